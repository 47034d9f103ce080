// Sockets that listen, and how the peers of accepted ones are called.
#ifndef REGATTA_BASE_LISTENING_SOCKET_H_
#define REGATTA_BASE_LISTENING_SOCKET_H_

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace regatta {

struct Listening {
  std::vector<UniqueFd> fds;  // do not block
  int port = 0;               // of all
};

// On all addresses that the host's name has, such as 127.0.0.1 and ::1 of
// localhost, but for those of a family that this machine does not have.
// InvalidArgument: no HOST:PORT. Unavailable: which of them the system refuses,
// and why.
absl::StatusOr<Listening> ListenOn(const std::string& address);

// Where these listen, numbers as ADDRESS:PORT ("127.0.0.1:80", "[::1]:80"), for
// a library that wants its own sockets there.
std::vector<std::string> AddressesOf(const Listening& listening);

// Whether only this machine's own programs can reach `host`, a name or an
// address. A name that does not resolve is not.
bool IsLoopback(const std::string& host);

struct PeerText {
  std::string peer;     // with the port, as gRPC calls it
  std::string address;  // without
  bool loopback = false;
};
PeerText DescribePeer(const sockaddr_storage& address);

// "ipv4:10.0.0.1" of "ipv4:10.0.0.1:5", a peer as gRPC calls it; what is none
// stays as it is.
std::string_view PeerAddress(std::string_view peer);

}  // namespace regatta

#endif  // REGATTA_BASE_LISTENING_SOCKET_H_
