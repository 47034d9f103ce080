#include "client/cli/server_address.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "client/cli/channel_client.h"
#include "tests/client/scoped_environment.h"
#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::regatta::testing::ScopedEnvironment;
using ::regatta::testing::TempDir;
using ::regatta::testing::WriteFile;

// A state folder of its own; no REGATTA_SERVER.
class FindServerTest : public ::testing::Test {
 protected:
  void LeaveAddress(const std::string& text) {
    std::filesystem::create_directories(home_.path() + "/regatta");
    WriteFile(AddressFile(home_.path() + "/regatta"), text);
  }

  TempDir home_;
  ScopedEnvironment state_{"XDG_STATE_HOME", home_.path().c_str()};
  ScopedEnvironment server_{"REGATTA_SERVER", nullptr};
};

TEST_F(FindServerTest, TheFlagComesFirst) {
  const ScopedEnvironment server("REGATTA_SERVER", "env:2");
  LeaveAddress("file:3\n");
  const auto found = FindServer("flag:1");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->address, "flag:1");
  EXPECT_EQ(found->source, "--server");
}

TEST_F(FindServerTest, ThenTheEnvironment) {
  const ScopedEnvironment server("REGATTA_SERVER", "env:2");
  LeaveAddress("file:3\n");
  const auto found = FindServer("");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->address, "env:2");
  EXPECT_EQ(found->source, "REGATTA_SERVER");
}

TEST_F(FindServerTest, ThenWhatUpLeft) {
  LeaveAddress("file:3\n");
  const auto found = FindServer("");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->address, "file:3");
  EXPECT_EQ(found->source, home_.path() + "/regatta/address");
}

TEST_F(FindServerTest, ThenTheDefault) {
  const auto found = FindServer("");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->address, "127.0.0.1:7470");
  LeaveAddress("");
  EXPECT_EQ(FindServer("")->address, "127.0.0.1:7470");
}

TEST_F(FindServerTest, AMalformedAddressIsBadUsageAndNamesItsSource) {
  for (const char* bad : {"nowhere", ":7470", "host:", "host:70000", "host:-1",
                          "host:x", "host:1.5"}) {
    const auto found = FindServer(bad);
    ASSERT_FALSE(found.ok()) << bad;
    EXPECT_TRUE(absl::IsInvalidArgument(found.status())) << bad;
    const std::string message(found.status().message());
    EXPECT_NE(message.find("--server"), std::string::npos) << message;
    EXPECT_NE(message.find(bad), std::string::npos) << message;
  }
  LeaveAddress("garbage\n");
  const std::string message(FindServer("").status().message());
  EXPECT_NE(message.find(home_.path()), std::string::npos) << message;
}

TEST(StateDir, FollowsTheEnvironment) {
  {
    const ScopedEnvironment state("XDG_STATE_HOME", "/x");
    EXPECT_EQ(DefaultStateDir(), "/x/regatta");
  }
  const ScopedEnvironment state("XDG_STATE_HOME", nullptr);
  {
    const ScopedEnvironment home("HOME", "/h");
    EXPECT_EQ(DefaultStateDir(), "/h/.local/state/regatta");
  }
  const ScopedEnvironment home("HOME", nullptr);
  EXPECT_EQ(DefaultStateDir(), "/var/tmp/regatta-" + std::to_string(getuid()));
}

// Commands take Cancelled for the user's Ctrl-C.
TEST(ServerChannel, ACallThatTheServerEndedWasNotStoppedByTheUser) {
  const ServerChannel channel({"127.0.0.1:7470", "--server"});
  const absl::Status status =
      channel.FromGrpc(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  const std::string message(status.message());
  EXPECT_NE(message.find("127.0.0.1:7470 ended the call"), std::string::npos)
      << message;
  EXPECT_NE(message.find("nothing of an answer is read for a minute"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace regatta::cli
