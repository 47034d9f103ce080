#include "base/host_port.h"

#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace regatta {

absl::StatusOr<std::pair<std::string, int>> SplitHostPort(
    std::string_view address) {
  const size_t colon = address.rfind(':');
  const std::string_view port_text =
      colon == std::string_view::npos ? "" : address.substr(colon + 1);
  int port = -1;
  if (colon == 0 || address.find_first_of(" \t\n/") != address.npos ||
      port_text.find_first_not_of("0123456789") != port_text.npos ||
      !absl::SimpleAtoi(ToAbsl(port_text), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", ToAbsl(address),
                     "' is no address: wanted HOST:PORT with a port from 0 "
                     "to 65535"));
  }
  return std::pair(std::string(address.substr(0, colon)), port);
}

absl::StatusOr<Addresses> ResolveToListen(const std::string& host, int port) {
  std::string name = host;
  if (name.size() > 1 && name.front() == '[') {
    name = name.substr(1, name.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  return Addresses(found);
}

}  // namespace regatta
