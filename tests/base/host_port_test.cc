#include "base/host_port.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace regatta
