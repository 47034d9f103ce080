#include "proto/security/exposure.h"

#include <gtest/gtest.h>

#include "proto/security/listening_socket.h"

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

}  // namespace
}  // namespace regatta
