// The device class of the machine that this program runs on.
#ifndef REGATTA_CLIENT_CLI_HOST_CLASS_H_
#define REGATTA_CLIENT_CLI_HOST_CLASS_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace regatta::cli {

struct Host {
  Target target;
  int cores = 1;             // that this process may use
  std::string cpu_list;      // which: "0-1,4"
  std::string device_class;  // that an agent here would have by default
};

absl::StatusOr<Host> DescribeHost();

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_HOST_CLASS_H_
