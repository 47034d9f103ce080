#include "tests/fleet_sim/break_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

namespace regatta::fleet_sim {

int BreakConnections(int port) {
  int broken = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    sockaddr_storage peer = {};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
      continue;
    }
    const int at = peer.ss_family == AF_INET6
                       ? reinterpret_cast<sockaddr_in6*>(&peer)->sin6_port
                   : peer.ss_family == AF_INET
                       ? reinterpret_cast<sockaddr_in*>(&peer)->sin_port
                       : 0;
    if (at != htons(static_cast<uint16_t>(port))) continue;
    if (shutdown(fd, SHUT_RDWR) == 0) ++broken;
  }
  return broken;
}

}  // namespace regatta::fleet_sim
