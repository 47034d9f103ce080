#include "proto/security/exposure.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <set>
#include <string>

#include "base/host_port.h"
#include "base/listening_socket.h"
#include "base/unique_fd.h"

namespace regatta {
namespace {

TEST(ExposureTest, PlainTextStaysOnThisMachine) {
  for (const char* address : {"127.0.0.1:7470", "127.9.9.9:0", "[::1]:7470"}) {
    EXPECT_TRUE(CheckExposure(address, false, false).ok()) << address;
  }
  for (const char* address : {"0.0.0.0:7470", "[::]:7470", "192.0.2.1:7470"}) {
    const absl::Status refused = CheckExposure(address, false, false);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << address;
    for (const char* what :
         {"--tls", "--insecure-plaintext", "regatta certs"}) {
      EXPECT_NE(refused.message().find(what), refused.message().npos) << what;
    }
    EXPECT_TRUE(CheckExposure(address, true, false).ok());
    EXPECT_TRUE(CheckExposure(address, false, true).ok());
  }
  EXPECT_FALSE(CheckExposure("nonsense", true, true).ok());
}

TEST(ListeningSocketTest, SaysWhyItCannotListen) {
  auto first = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  EXPECT_GT(first->port, 0);
  const auto second = ListenOn("127.0.0.1:" + std::to_string(first->port));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find("in use"),
            second.status().message().npos);
}

// A name may have an address of each family, and either may come first.
TEST(ListeningSocketTest, ListensOnAllThatANameStandsFor) {
  const auto listening = ListenOn("localhost:0");
  ASSERT_TRUE(listening.ok()) << listening.status();
  const auto addresses = ResolveToListen("localhost", listening->port);
  ASSERT_TRUE(addresses.ok());
  size_t reached = 0;
  std::set<std::string> distinct;
  for (const addrinfo* at = addresses->get(); at != nullptr; at = at->ai_next) {
    const UniqueFd fd(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid()) continue;
    const int connected = connect(fd.get(), at->ai_addr, at->ai_addrlen);
    if (connected != 0 && errno == EADDRNOTAVAIL) continue;
    EXPECT_EQ(connected, 0) << strerror(errno);
    reached += connected == 0 ? 1 : 0;
    distinct.emplace(reinterpret_cast<const char*>(at->ai_addr),
                     at->ai_addrlen);
  }
  EXPECT_GE(reached, 1u);
  EXPECT_EQ(listening->fds.size(), distinct.size());
  std::cout << distinct.size() << " addresses\n";
}

TEST(ListeningSocketTest, AnAddressInUseRefusesTheWholeName) {
  const auto first = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const auto second = ListenOn("localhost:" + std::to_string(first->port));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find("127.0.0.1: Address already in use"),
            second.status().message().npos)
      << second.status();
}

}  // namespace
}  // namespace regatta
