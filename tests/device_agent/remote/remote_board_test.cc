// A measure-only board with real workers, its modules from a real build worker
// behind a wire.
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "compiler/compile.h"
#include "device_agent/remote/builder_key.h"
#include "device_agent/remote/remote_build_worker.h"
#include "tests/device_agent/remote/wire.h"
#include "tests/device_agent/runner_fixture.h"

namespace regatta {
namespace {

constexpr char kMatmul[] = "matmul(m=64,n=48,k=80)";

class RemoteBoard : public RunnerTest {
 protected:
  ~RemoteBoard() override { wire_.builder.reset(); }

  // Of boards that have no build worker, not even as a program.
  void StartBoard() {
    RunnerOptions options;
    options.build_worker = "regatta-no-build-worker";
    options.builders = [this] {
      if (wire_.desk == nullptr) StartWire();
      return std::make_unique<RemoteBuildWorker>(wire_.desk.get());
    };
    StartRunner(options);
  }
  v1::TrialSpec SpecOf(const std::string& workload) {
    v1::TrialSpec spec = Trial(workload);
    spec.set_compiler_version(CompilerVersion(target_));
    return spec;
  }

  const SigningKey key_ = SigningKey::Generate();
  Wire wire_;
  absl::Duration builder_wait_ = absl::Seconds(60);

 private:
  void StartWire() {
    BuildWorkerOptions build;
    build.program = REGATTA_BIN_DIR "/regatta-build-worker";
    locks_ = std::make_unique<CoreLocks>(StateDir());
    std::vector<OrderBuilder::Slot> slots;
    slots.push_back({0, std::make_unique<BuildClient>(build, spawner_)});
    OrderDesk::Options desk;
    desk.trusted = {key_.public_key()};
    desk.limit = builder_wait_;
    wire_.desk =
        std::make_unique<OrderDesk>(desk, &RealClock(), wire_.FromBoard());
    wire_.builder = std::make_unique<OrderBuilder>(
        key_, "b", std::move(slots), locks_.get(), wire_.FromBuilder());
    wire_.Up();
  }

  std::unique_ptr<CoreLocks> locks_;
};

TEST_F(RemoteBoard, TimesWhatABuilderMadeAndItIsWhatItWouldHaveMade) {
  StartBoard();
  const v1::TrialSpec spec = SpecOf(kMatmul);
  const v1::TrialResult result = RunOne(spec);
  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
  EXPECT_GT(result.time_ns(), 0);
  EXPECT_GT(result.max_error(), 0);  // the reference was compared with
  EXPECT_EQ(result.environment().builder(),
            absl::StrCat("b ", KeyName(key_.public_key())));
  EXPECT_EQ(result.environment().compiler_version(), spec.compiler_version());
  const auto here = BoardBinaryHash(SpaceOf(kMatmul), spec.schedule().text());
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(result.binary_hash(), *here);
}

TEST_F(RemoteBoard, RunsNothingThatWasChangedOnTheWay) {
  wire_.on_chunk = [](v1::BlobChunk& chunk) {
    chunk.mutable_data()->front() ^= 1;
    return true;
  };
  StartBoard();
  const v1::TrialResult result = RunOne(SpecOf(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_DEVICE_FAULT);
  EXPECT_NE(result.detail().find("it signed"), std::string::npos)
      << result.detail();
  EXPECT_EQ(result.phases().verify_ns(), 0);
  EXPECT_EQ(result.timed_end_boot_ns(), 0);
}

TEST_F(RemoteBoard, RunsNothingOfAStranger) {
  const SigningKey stranger = SigningKey::Generate();
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    answer.set_public_key(stranger.public_key());
    return true;
  };
  StartBoard();
  const v1::TrialResult result = RunOne(SpecOf(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_DEVICE_FAULT);
  EXPECT_NE(result.detail().find("--trust-builder"), std::string::npos)
      << result.detail();
  EXPECT_EQ(result.phases().verify_ns(), 0);
}

TEST_F(RemoteBoard, ARefusedScheduleIsTheCandidatesOutcome) {
  StartBoard();
  v1::TrialSpec spec = SpecOf(kMatmul);
  spec.mutable_schedule()->set_text("nonsense{}");
  const v1::TrialResult result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_COMPILE_ERROR) << result.detail();
}

TEST_F(RemoteBoard, AnotherCompilerIsNotTheCandidatesFault) {
  int declined = 0;
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    declined += answer.unavailable().empty() ? 0 : 1;
    if (declined > 1) wire_.desk->OnSession({true, false, 0});  // enough
    return true;
  };
  StartBoard();
  v1::TrialSpec spec = SpecOf(kMatmul);
  spec.set_compiler_version("another/LLVM 1");
  const v1::TrialResult result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_DEVICE_FAULT) << result.detail();
  EXPECT_GE(declined, 1);
}

// The board did nothing wrong, whatever it was that nobody built.
TEST_F(RemoteBoard, WhatNobodyBuildsIsNoFaultOfTheBoard) {
  bool references_only = false;
  wire_.on_order = [&](v1::BuildOrder& order) {
    v1::BuildRequest request;
    return references_only && request.ParseFromString(order.request()) &&
           !request.has_reference();
  };
  builder_wait_ = absl::Seconds(4);
  StartBoard();
  v1::TrialResult result = RunOne(SpecOf(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_AGENT_LOST) << result.detail();
  EXPECT_NE(result.detail().find("waited 4s for a builder"), std::string::npos)
      << result.detail();
  references_only = true;
  result = RunOne(SpecOf(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_AGENT_LOST) << result.detail();
  EXPECT_NE(result.detail().find("the reference of"), std::string::npos)
      << result.detail();
}

// The whole way for another architecture, but for running it.
TEST_F(RemoteBoard, ABuilderDescribesAndBuildsForAnotherArchitecture) {
  StartBoard();
  RemoteBuildWorker builder(wire_.desk.get());
  v1::DescribeRequest describe;
  describe.set_cores(4);
  describe.mutable_processor()->set_architecture("aarch64");
  describe.mutable_processor()->set_cpuinfo(
      "processor\t: 0\nBogoMIPS\t: 108.00\n"
      "Features\t: fp asimd evtstrm crc32 cpuid\n"
      "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
      "CPU part\t: 0xd08\nCPU revision\t: 3\n");
  const auto described = Describe(builder, describe, nullptr);
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->device_class(), "cortex-a72-4c");
  const auto target = ParseTarget(described->target());
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->triple, "aarch64-linux-gnu");

  v1::BuildRequest request;
  request.mutable_reference()->set_workload("matmul(m=4,n=4,k=4)");
  request.mutable_reference()->set_target(described->target());
  request.mutable_reference()->set_samples(5);
  const auto reference = builder.Call(request, nullptr);
  ASSERT_TRUE(reference.ok()) << reference.status();
  EXPECT_EQ(reference->response.reference().outputs(0).values_size(), 5);
  const auto mapped = MappedFile::Map(reference->file.get());
  ASSERT_TRUE(mapped.ok());
  // A shared object for AArch64: e_machine 183 (ELF for the Arm 64-bit
  // Architecture).
  const size_t elf = mapped->bytes().find(
      "\x7f"
      "ELF");
  ASSERT_NE(elf, std::string_view::npos);
  EXPECT_EQ(static_cast<unsigned char>(mapped->bytes()[elf + 18]), 183);
}

TEST_F(RemoteBoard, ItsOwnProcessorsAreDescribedAsABuildWorkerHereWould) {
  StartBoard();
  RemoteBuildWorker builder(wire_.desk.get());
  std::ifstream file("/proc/cpuinfo");
  v1::DescribeRequest describe;
  describe.set_cores(2);
  describe.mutable_processor()->set_architecture("x86_64");
  describe.mutable_processor()->set_cpuinfo(
      std::string(std::istreambuf_iterator<char>(file), {}));
  const auto target = ParseTarget(target_.ToString());
  if (target->triple.find("x86_64") == std::string::npos) {
    GTEST_SKIP() << "not an x86-64 machine";
  }
  const auto described = Describe(builder, describe, nullptr);
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->target(), target_.ToString());
}

}  // namespace
}  // namespace regatta
