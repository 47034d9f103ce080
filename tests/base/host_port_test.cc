#include "base/host_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace regatta {
namespace {

TEST(SplitHostPort, TakesHostsAndKeepsTheirColons) {
  EXPECT_EQ(*SplitHostPort("127.0.0.1:0"),
            std::pair(std::string("127.0.0.1"), 0));
  EXPECT_EQ(*SplitHostPort("lab:65535"), std::pair(std::string("lab"), 65535));
  EXPECT_EQ(*SplitHostPort("[::1]:80"), std::pair(std::string("[::1]"), 80));
}

TEST(SplitHostPort, QuotesWhatIsNoAddress) {
  for (const std::string text :
       {"", "lab", ":80", "lab:", "lab:65536", "lab:-1", "lab:+1", "lab:80 ",
        " lab:80", "lab:0x50", "lab:99999999999999999999", "http://lab:80"}) {
    const auto parts = SplitHostPort(text);
    ASSERT_FALSE(parts.ok()) << text;
    EXPECT_EQ(parts.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(parts.status().message().find("'" + text + "'"),
              absl::string_view::npos);
  }
}

TEST(WhyNotListening, NamesAPortInUse) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  EXPECT_EQ(WhyNotListening("127.0.0.1", ntohs(address.sin_port)),
            "Address already in use");
  close(fd);
}

}  // namespace
}  // namespace regatta
