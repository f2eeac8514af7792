#pragma once
// The whole process: everything is made here, in one function, top to bottom, and goes in reverse.
#include <memory>
#include <string>

#include "server/app/config.h"
#include "storage/base/clock.h"
#include "storage/base/log.h"
#include "storage/base/status.h"

namespace varve::app {

class App {
 public:
  // Listens first (answering 503 until all is there), then recovers the data directory; ready when it returns. `clock`
  // must outlive the app.
  static absl::StatusOr<std::unique_ptr<App>> Start(const Config& config, const base::Clock& clock,
                                                    const base::Logger& log);
  ~App();
  // Refuses new requests, finishes the running ones, writes a checkpoint. Once.
  void Stop();
  int http_port() const;

 private:
  struct Impl;
  explicit App(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::app
