#include "proto/security/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// Clients of a burst wait here while they are admitted at a pace.
constexpr int kBacklog = 4096;

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

}  // namespace

absl::StatusOr<Listening> ListenOn(const std::string& address) {
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  const auto refused = [&address](const std::string& why) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", why));
  };
  auto found = ResolveToListen(host_port.first, host_port.second);
  if (!found.ok()) return refused(std::string(found.status().message()));
  const addrinfo& at = **found;
  Listening listening;
  listening.fd.Reset(
      socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1, off = 0;
  if (listening.fd.valid()) {
    setsockopt(listening.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at.ai_family == AF_INET6) {
      setsockopt(listening.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off,
                 sizeof off);
    }
  }
  if (!listening.fd.valid() ||
      bind(listening.fd.get(), at.ai_addr, at.ai_addrlen) != 0 ||
      listen(listening.fd.get(), kBacklog) != 0) {
    return refused(std::strerror(errno));
  }
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  getsockname(listening.fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  // The port stands at the same place in both families.
  listening.port = ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return listening;
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
