#include "device_agent/sensors/number_file.h"

#include <glob.h>

#include <fstream>

namespace regatta {

std::optional<double> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

std::vector<std::string> MatchingPaths(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found = {};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

}  // namespace regatta
