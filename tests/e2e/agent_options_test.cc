// `regatta-agent --check-options`: what would keep an agent from starting, and
// nothing made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

using ::testing::HasSubstr;

class AgentOptions : public ::testing::Test {
 protected:
  ProcessResult Check(std::vector<std::string> options) const {
    options.insert(options.begin(),
                   {Program("regatta-agent"), "--check-options", "--state",
                    temp_.path() + "/state"});
    return RunProcess(options, {}, absl::Seconds(20));
  }
  TempDir temp_;
};

TEST_F(AgentOptions, GoodOnesAreSaidToBeAndNothingIsMade) {
  // Where nobody listens.
  const ProcessResult good = Check({"--tracker", "127.0.0.1:1", "--id", "b1"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "the options are good\n");
  EXPECT_TRUE(std::filesystem::is_empty(temp_.path()));
}

TEST_F(AgentOptions, BadOnesAreNamed) {
  const std::string tls = temp_.path() + "/tls";
  struct Case {
    std::vector<std::string> options;
    int exit_code;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{"--trackr", "127.0.0.1:1"}, 2, "--trackr"},
      {{"--tracker", "lab"}, 2, "--tracker: \"lab\""},
      {{"--tracker", "192.0.2.1:7471"}, 2, "--insecure-plaintext"},
      {{"--metrics", "192.0.2.1:1"}, 2, "--metrics"},
      {{"--id", "a b"}, 2, "--id"},
      {{"--device-class", "a b"}, 2, "--device-class"},
      {{"--cores", "99999"}, 2, "99999"},
      {{"--devices", "cpu,abacus"}, 2, "abacus"},
      {{"--role", "cook"}, 2, "cook"},
      {{"--target", "cuda"}, 2, "--target"},
      {{"--trust-builder", "/none/key"}, 2, "/none/key"},
      {{"--cuda-driver", "/etc/hostname"}, 1, "--cuda-driver"},
      {{"--worker-dir", "/none"}, 1, "no regatta-build-worker in /none"},
      {{"--join", "@/none"}, 2, "--tls"},
      {{"--tls", tls}, 1, tls},
      {{"--tls", tls, "--join", "@/none/token"}, 1, "/none/token"},
  };
  for (const Case& c : cases) {
    const ProcessResult bad = Check(c.options);
    EXPECT_EQ(bad.exit_code, c.exit_code) << c.options[0] << bad.err;
    EXPECT_THAT(bad.err, HasSubstr(c.says));
    EXPECT_EQ(bad.out, "") << c.options[0];
  }
  EXPECT_TRUE(std::filesystem::is_empty(temp_.path()));
}

}  // namespace
}  // namespace regatta::testing
