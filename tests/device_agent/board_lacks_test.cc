// What a board lacks never counts against a candidate.
#include <thread>

#include "base/clock.h"
#include "device_agent/build/build_server.h"
#include "device_agent/run/host_runtime.h"
#include "gtest/gtest.h"
#include "tests/device_agent/few_files.h"

namespace regatta {
namespace {

// Gives an empty module, or `error`.
class FakeSource : public ModuleSource {
 public:
  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest&) override {
    return v1::Description();
  }
  absl::StatusOr<v1::BuilderReach> Reach() override {
    return v1::BuilderReach();
  }
  absl::StatusOr<SourcedModule> Build(const v1::ModuleRequest&) override {
    if (!error.ok()) return error;
    return SourcedModule();
  }
  absl::StatusOr<SourcedReference> BuildReference(
      const v1::ReferenceRequest&) override {
    return SourcedReference();
  }
  absl::Status error;
};

class BoardLacksTest : public ::testing::Test {
 protected:
  BoardLacksTest() {
    auto ends = FrameChannel::SocketPair();
    EXPECT_TRUE(ends.ok());
    agent_ = std::make_unique<FrameChannel>(std::move(ends->first));
    worker_ = std::make_unique<FrameChannel>(std::move(ends->second));
    server_ = std::thread([this] {
      EXPECT_TRUE(ServeBuilds(*worker_, source_, RealClock()).ok());
    });
  }
  ~BoardLacksTest() override {
    agent_.reset();
    server_.join();
  }
  v1::BuildResponse Ask(const v1::BuildRequest& request) {
    EXPECT_TRUE(agent_->Send(request).ok());
    auto response = agent_->ReceiveMessage<v1::BuildResponse>();
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::BuildResponse();
  }

  FakeSource source_;
  std::unique_ptr<FrameChannel> agent_, worker_;
  std::thread server_;
};

TEST_F(BoardLacksTest, ABuildWorkersErrorsAreTheCandidatesUnlessTheBoards) {
  v1::BuildRequest request;
  request.mutable_module();
  EXPECT_TRUE(Ask(request).has_module());
  source_.error = absl::InvalidArgumentError("no such knob");
  EXPECT_EQ(Ask(request).failure().outcome(), v1::OUTCOME_COMPILE_ERROR);
  source_.error = absl::FailedPreconditionError("registers: 40 of 32");
  EXPECT_EQ(Ask(request).failure().outcome(), v1::OUTCOME_REFUSED);
  source_.error = absl::ResourceExhaustedError("memory file: ENFILE");
  EXPECT_EQ(Ask(request).failure().outcome(), v1::OUTCOME_DEVICE_FAULT);
}

TEST_F(BoardLacksTest, AFileForAModuleThatMayNotBeOpenedIsTheBoards) {
  v1::BuildRequest module, reference;
  module.mutable_module();
  reference.mutable_reference();
  for (const v1::BuildRequest& request : {module, reference}) {
    v1::BuildResponse response;
    {
      const FewFiles few;
      response = Ask(request);
    }
    EXPECT_EQ(response.failure().outcome(), v1::OUTCOME_DEVICE_FAULT)
        << response.ShortDebugString();
    EXPECT_NE(response.failure().detail().find("memory file"),
              std::string::npos);
  }
}

TEST(RunWorkerLacks, AFileForCodeThatMayNotBeOpenedIsTheBoards) {
  Module module;
  module.loadable = "no shared object";
  RuntimeOptions options;
  options.clock = &RealClock();
  MaybeFailure failure;
  {
    const FewFiles few;
    failure = CreateHostRuntime(module, options).failure;
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->outcome(), v1::OUTCOME_DEVICE_FAULT);
  // What the loader says of it is the candidate's.
  failure = CreateHostRuntime(module, options).failure;
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->outcome(), v1::OUTCOME_CRASHED);
}

}  // namespace
}  // namespace regatta
