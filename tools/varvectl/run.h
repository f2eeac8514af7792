#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "storage/base/clock.h"

namespace varve::ctl {

enum ExitCode { kOk = 0, kRefused = 1, kUsage = 2, kUnreachable = 3 };

// Everything that varvectl does. `arguments` are those of the command line without the program's name.
int Run(const std::vector<std::string>& arguments, const base::Clock& clock, std::istream& in, std::ostream& out,
        std::ostream& err);

}  // namespace varve::ctl
