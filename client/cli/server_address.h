// Where the server is.
#ifndef REGATTA_CLIENT_CLI_SERVER_ADDRESS_H_
#define REGATTA_CLIENT_CLI_SERVER_ADDRESS_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/certs/tls_identity.h"

namespace regatta::cli {

inline constexpr std::string_view kDefaultServer = "127.0.0.1:7470";

struct ServerFlags {
  std::string server;  // --server; empty: look it up
  std::string tls;     // --tls; empty: look it up
  bool insecure_plaintext = false;
};

struct ServerAddress {
  std::string address;  // HOST:PORT
  std::string source;   // "--server", "REGATTA_SERVER", a file, "the default"
  std::string tls_dir;  // of whoever asks; "": plain text
  std::shared_ptr<TlsIdentity> tls;  // what is in it; filled by ReachServer
};

// The first of: the flag; $REGATTA_SERVER; the address that `regatta up` wrote
// to the state folder; the default. InvalidArgument when the one found is not
// HOST:PORT.
// The address file's second line, where there is one, is the folder of the
// certificate to show there.
absl::StatusOr<ServerAddress> FindServer(std::string_view flag);

// FindServer with what secures the way there: the certificate of --tls, else
// $REGATTA_TLS, else the one that FindServer found. InvalidArgument for plain
// text to another machine, unless that is wanted; FailedPrecondition: the
// certificate does not count.
absl::StatusOr<ServerAddress> ReachServer(const ServerFlags& flags);

// $XDG_STATE_HOME/regatta, else ~/.local/state/regatta, else
// /var/tmp/regatta-UID where there is no home.
std::string DefaultStateDir();
// The file in a state folder that holds the server's address.
std::string AddressFile(std::string_view state_dir);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_SERVER_ADDRESS_H_
