#pragma once
#include <string>

#include "tools/promqltest/world.h"

namespace varve::promqltest {

// Samples where a server keeps them: written through the log into the heads of several shards, under a temporary
// folder.
class ServerWorld : public World {
 public:
  enum class After {  // what happens between a load and the next query
    kNothing,         // everything is in the heads
    kFlush,           // everything is in blocks
    kRestart,         // the process died: everything comes from the log
    kFlushAndRestart  // from blocks, a checkpoint and what the log has besides
  };
  static absl::StatusOr<std::unique_ptr<World>> Create(After after);
};

}  // namespace varve::promqltest
