#include <iostream>

#include "tools/varvectl/run.h"

int main(int argc, char** argv) {
  const varve::base::SystemClock clock;
  return varve::ctl::Run(std::vector<std::string>(argv + 1, argv + argc), clock, std::cin, std::cout, std::cerr);
}
