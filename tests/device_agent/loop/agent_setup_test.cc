#include "device_agent/loop/agent_setup.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class FakeWorker : public BuildWorkerInfo {
 public:
  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& device) override {
    cores_ = device.cores();
    if (!status_.ok()) return status_;
    v1::Description description;
    description.set_target("cpu,triple=x86_64-linux-gnu,mcpu=znver4");
    description.set_compiler_version("c1");
    description.set_space("cpu");
    description.set_space_version(2);
    description.set_device_class("znver4-2c");
    return description;
  }
  int cores_ = 0;
  absl::Status status_;
};

Machine TestMachine() {
  Machine machine;
  machine.hostname = "lab";
  machine.machine_id = "m";
  machine.boot_id = "b";
  machine.memory_bytes = 1 << 30;
  machine.marketing_name = "EPYC";
  return machine;
}

absl::StatusOr<v1::Hello> TestHello(const AgentFlags& flags,
                                    const std::vector<int>& cpus,
                                    bool simulated = false) {
  FakeWorker worker;
  return MakeHello(flags, TestMachine(), cpus, "/none",
                   *DescribeHost(static_cast<int>(cpus.size()), worker),
                   simulated);
}

TEST(AgentSetupTest, TheHelloSaysWhatTheWorkerAndTheMachineSay) {
  FakeWorker worker;
  ASSERT_TRUE(DescribeHost(2, worker).ok());
  EXPECT_EQ(worker.cores_, 2);
  const auto hello = TestHello({}, {2, 3});
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->compiler_version(), "c1");
  EXPECT_EQ(hello->space_version(), 2);
  EXPECT_EQ(hello->boot_id(), "b");
  EXPECT_FALSE(hello->agent_version().empty());
  EXPECT_FALSE(hello->instance_id().empty());
  EXPECT_EQ(hello->devices_size(), 0);
}

TEST(AgentSetupTest, EveryStartIsAnotherInstanceOfTheSameAgent) {
  const auto first = TestHello({}, {0});
  const auto second = TestHello({}, {0});
  EXPECT_EQ(first->agent_id(), second->agent_id());
  EXPECT_NE(first->instance_id(), second->instance_id());
}

TEST(AgentSetupTest, NamesOfFlagsAreTakenOrRefused) {
  AgentFlags flags;
  flags.id = "board7";
  const auto hello = TestHello(flags, {0});
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->agent_id(), "board7");
  flags.device_class = "my class";
  EXPECT_THAT(std::string(TestHello(flags, {0}).status().message()),
              HasSubstr("--device-class"));
  flags.id = "no good";
  EXPECT_THAT(std::string(TestHello(flags, {0}).status().message()),
              HasSubstr("--id"));
}

TEST(AgentSetupTest, AnEmulatedAgentIsNamedSimulatedOrRefused) {
  const std::string real = TestHello({}, {0})->agent_id();
  EXPECT_EQ(TestHello({}, {0}, true)->agent_id(), "simulated-" + real);
  AgentFlags flags;
  flags.id = "simulated-board7";
  flags.device_class = "simulated-cortex-a72-1c";
  const auto hello = TestHello(flags, {0}, true);
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->agent_id(), "simulated-board7");
  flags.device_class = "cortex-a72-1c";
  EXPECT_THAT(std::string(TestHello(flags, {0}, true).status().message()),
              HasSubstr("--device-class: \"cortex-a72-1c\" must begin with "
                        "\"simulated-\""));
  flags.id = "board7";
  const absl::Status refused = TestHello(flags, {0}, true).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--id"));
}

TEST(AgentSetupTest, ABrokenBuildWorkerIsNamed) {
  FakeWorker worker;
  worker.status_ = absl::NotFoundError("/x/regatta-build-worker: not there");
  const auto host = DescribeHost(1, worker);
  EXPECT_EQ(host.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(host.status().message()),
              HasSubstr("asking the build worker: /x/regatta-build-worker"));
}

TEST(AgentSetupTest, ATargetOfOtherProcessorsIsRefusedWithBoth) {
#if defined(__x86_64__)
  const std::string own = "x86_64", other = "aarch64";
#elif defined(__aarch64__)
  const std::string own = "aarch64", other = "x86_64";
#else
  GTEST_SKIP() << "this architecture is not told apart from others";
#endif
  for (const std::string& good :
       {std::string("cpu"), std::string("cpu,mcpu=cortex-a76"),
        "cpu,triple=" + own + "-linux-gnu,mcpu=x", "cpu,triple=" + own}) {
    EXPECT_EQ(CheckProcessorTarget("--target", good), absl::OkStatus());
  }
  const std::string target = "cpu,triple=" + other + "-linux-gnu,mcpu=x";
  EXPECT_EQ(CheckProcessorTarget("--target", target),
            absl::InvalidArgumentError(
                "--target: this agent runs on " + own + ", and the target " +
                target + " is of " + other + ", whose code does not run here"));
  for (const char* kind : {"x", "opencl", "cuda,mcpu=sm_80", ""}) {
    EXPECT_THAT(
        std::string(CheckProcessorTarget("--target", kind).message()),
        HasSubstr("--target: a target of this board's processors is of kind "
                  "cpu"));
  }
}

TEST(AgentSetupTest, AddressesAreHostAndPort) {
  for (const char* good : {"127.0.0.1:7471", "lab:1", "[::1]:65535"}) {
    EXPECT_TRUE(CheckAddress(good).ok()) << good;
  }
  for (const char* bad : {"", "lab", ":7471", "lab:", "lab:0", "lab:65536",
                          "lab:x", "lab:-1", "http://lab:1", "a b:1"}) {
    const absl::Status status = CheckAddress(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("HOST:PORT"));
  }
}

TEST(AgentSetupTest, AStateFolderThatCannotBeMadeIsNamed) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "state-XXXXXX").string();
  const std::string dir = mkdtemp(pattern.data());
  EXPECT_TRUE(MakeStateDir(dir + "/a/b").ok());
  EXPECT_TRUE(std::filesystem::is_directory(dir + "/a/b"));
  std::ofstream(dir + "/file") << "x";
  for (const char* bad : {"/file", "/file/below"}) {
    const absl::Status status = MakeStateDir(dir + bad);
    ASSERT_FALSE(status.ok()) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr(dir + bad));
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace regatta
