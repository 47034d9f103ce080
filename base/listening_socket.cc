#include "base/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// Clients of a burst wait here while they are admitted at a pace.
constexpr int kBacklog = 4096;
// Any free port of one address may be in use at another.
constexpr int kPortsTried = 16;

bool IsLoopbackV4(uint32_t network_order) {
  return (ntohl(network_order) >> 24) == 127;
}

bool IsLoopbackAddress(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return IsLoopbackV4(
        reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
  }
  if (address->sa_family != AF_INET6) return false;
  const in6_addr& six =
      reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&six)) return IN6_IS_ADDR_LOOPBACK(&six);
  uint32_t four;
  std::memcpy(&four, six.s6_addr + 12, sizeof four);
  return IsLoopbackV4(four);
}

// Another name of an address that came before it, as some systems have.
bool ComesAgain(const addrinfo& all, const addrinfo& one) {
  for (const addrinfo* at = &all; at != &one; at = at->ai_next) {
    if (at->ai_addrlen == one.ai_addrlen &&
        std::memcmp(at->ai_addr, one.ai_addr, one.ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

// A socket at `at` with this port, 0: any. Invalid, and errno: refused.
UniqueFd ListenAt(const addrinfo& at, int port, bool six_only) {
  UniqueFd fd(
      socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fd;
  const int on = 1, only = six_only ? 1 : 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  sockaddr_storage bound = {};
  std::memcpy(&bound, at.ai_addr, at.ai_addrlen);
  // The port stands at the same place in both families.
  reinterpret_cast<sockaddr_in*>(&bound)->sin_port =
      htons(static_cast<uint16_t>(port));
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&bound), at.ai_addrlen) == 0 &&
      listen(fd.get(), kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  fd.Reset();
  errno = error;
  return fd;
}

// "", or what the system refuses. `port`: 0 takes the one that it gives to the
// first address.
std::string ListenOnAll(const addrinfo& all, Listening* listening) {
  bool has_four = false;
  for (const addrinfo* at = &all; at != nullptr; at = at->ai_next) {
    has_four |= at->ai_family == AF_INET;
  }
  std::string absent;
  for (const addrinfo* at = &all; at != nullptr; at = at->ai_next) {
    if (ComesAgain(all, *at)) continue;
    UniqueFd fd = ListenAt(*at, listening->port, /*six_only=*/has_four);
    const int error = errno;
    if (!fd.valid()) {
      sockaddr_storage address = {};
      std::memcpy(&address, at->ai_addr, at->ai_addrlen);
      const std::string why = absl::StrCat(DescribePeer(address).address, ": ",
                                           std::strerror(error));
      // A name may have addresses that this machine has no protocol for.
      if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) return why;
      absent = why;
      continue;
    }
    sockaddr_storage bound = {};
    socklen_t size = sizeof bound;
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    listening->port = ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
    listening->fds.push_back(std::move(fd));
  }
  return listening->fds.empty() ? absent : "";
}

}  // namespace

absl::StatusOr<Listening> ListenOn(const std::string& address) {
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  const auto& [host, port] = host_port;
  const auto refused = [&address](const std::string& why) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", why));
  };
  auto found = ResolveToListen(host, port);
  if (!found.ok()) return refused(std::string(found.status().message()));
  std::string why;
  for (int attempt = 0; attempt < kPortsTried; ++attempt) {
    Listening listening;
    listening.port = port;
    why = ListenOnAll(**found, &listening);
    if (why.empty()) return listening;
    if (port != 0) break;
  }
  return refused(why);
}

std::vector<std::string> AddressesOf(const Listening& listening) {
  std::vector<std::string> addresses;
  for (const UniqueFd& fd : listening.fds) {
    sockaddr_storage bound = {};
    socklen_t size = sizeof bound;
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    const std::string host = DescribePeer(bound).address;
    const bool six = host.find(':') != host.npos;
    addresses.push_back(absl::StrCat(six ? "[" : "", host, six ? "]" : "", ":",
                                     listening.port));
  }
  return addresses;
}

bool IsLoopback(const std::string& host) {
  const auto found = ResolveToListen(host, 0);
  if (!found.ok()) return false;
  for (const addrinfo* at = found->get(); at != nullptr; at = at->ai_next) {
    if (!IsLoopbackAddress(at->ai_addr)) return false;
  }
  return true;
}

PeerText DescribePeer(const sockaddr_storage& address) {
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  PeerText text;
  text.loopback = IsLoopbackAddress(plain);
  char name[INET6_ADDRSTRLEN] = "";
  const int port = ntohs(reinterpret_cast<const sockaddr_in*>(plain)->sin_port);
  if (address.ss_family == AF_INET6) {
    const in6_addr& six =
        reinterpret_cast<const sockaddr_in6*>(plain)->sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&six)) {
      inet_ntop(AF_INET6, &six, name, sizeof name);
      text.address = name;
      text.peer = absl::StrCat("ipv6:%5B", name, "%5D:", port);
      return text;
    }
    inet_ntop(AF_INET, six.s6_addr + 12, name, sizeof name);
  } else {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(plain)->sin_addr,
              name, sizeof name);
  }
  text.address = name;
  text.peer = absl::StrCat("ipv4:", name, ":", port);
  return text;
}

std::string_view PeerAddress(std::string_view peer) {
  const bool has_port = peer.starts_with("ipv4:") || peer.starts_with("ipv6:");
  const size_t colon = peer.rfind(':');
  return has_port && colon > 5 ? peer.substr(0, colon) : peer;
}

}  // namespace regatta
