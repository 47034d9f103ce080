// Where this program's file is: its daemons and workers are beside it.
#ifndef REGATTA_CLIENT_CLI_OWN_DIRECTORY_H_
#define REGATTA_CLIENT_CLI_OWN_DIRECTORY_H_

#include <filesystem>
#include <string>

namespace regatta::cli {

inline std::string OwnDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error)
      .parent_path()
      .string();
}

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_OWN_DIRECTORY_H_
