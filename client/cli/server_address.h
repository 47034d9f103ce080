// Where the server is.
#ifndef REGATTA_CLIENT_CLI_SERVER_ADDRESS_H_
#define REGATTA_CLIENT_CLI_SERVER_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace regatta::cli {

inline constexpr std::string_view kDefaultServer = "127.0.0.1:7470";

struct ServerAddress {
  std::string address;  // HOST:PORT
  std::string source;   // "--server", "REGATTA_SERVER", a file, "the default"
};

// The first of: the flag; $REGATTA_SERVER; the address that `regatta up` wrote
// to the state folder; the default. InvalidArgument when the one found is not
// HOST:PORT.
absl::StatusOr<ServerAddress> FindServer(std::string_view flag);

// $XDG_STATE_HOME/regatta, else ~/.local/state/regatta, else
// /var/tmp/regatta-UID where there is no home.
std::string DefaultStateDir();
// The file in a state folder that holds the server's address.
std::string AddressFile(std::string_view state_dir);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_SERVER_ADDRESS_H_
