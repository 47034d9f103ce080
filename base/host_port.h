// Addresses as people and flags write them: HOST:PORT.
#ifndef REGATTA_BASE_HOST_PORT_H_
#define REGATTA_BASE_HOST_PORT_H_

#include <netdb.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace regatta {

// "HOST", PORT; "[::1]:80" keeps its brackets. InvalidArgument quoting the
// address unless the host is not empty and free of blanks, and the port is
// digits from 0 to 65535.
absl::StatusOr<std::pair<std::string, int>> SplitHostPort(
    std::string_view address);

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// What the host's name or address, in brackets or not, is for who listens
// there over TCP; at least one. Unavailable: the resolver's words.
absl::StatusOr<Addresses> ResolveToListen(const std::string& host, int port);

}  // namespace regatta

#endif  // REGATTA_BASE_HOST_PORT_H_
