// The agent's runtime over real gRPC, against a tracker of a few lines.
#include "device_agent/tracker_client.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/loop/agent_runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/support/fake_fleet_service.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;

constexpr std::chrono::seconds kPatience = FakeFleetService::kPatience;

class FakeRunner : public TrialRunner {
 public:
  explicit FakeRunner(ResultCallback sink) : sink_(std::move(sink)) {}
  void Start(v1::Assignment assignment) override {
    {
      std::lock_guard lock(mutex_);
      started_.push_back(assignment.assignment_id());
    }
    if (!finishes_) return;
    v1::TrialResult result;
    *result.mutable_spec() = assignment.trials(0);
    result.set_outcome(v1::OUTCOME_OK);
    result.set_attempt(assignment.attempt());
    sink_(assignment.assignment_id(), result, true);
  }
  void Stop(const std::string& assignment_id) override {
    std::lock_guard lock(mutex_);
    stopped_.push_back(assignment_id);
  }
  void Finish(const std::string& /*assignment_id*/,
              std::function<void()> idle) override {
    idle();
  }
  void UpdateDevice(const v1::DeviceInfo& /*device*/) override {}
  int64_t WorkTicks() const override { return 1; }

  bool finishes_ = true;
  std::vector<std::string> started_, stopped_;

 private:
  std::mutex mutex_;
  const ResultCallback sink_;
};

v1::Assignment OneTrial() {
  v1::Assignment assignment;
  assignment.set_assignment_id("s/1");
  assignment.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
  assignment.set_attempt(1);
  assignment.set_lease_epoch(1);
  assignment.set_device_id("d");
  v1::TrialSpec& trial = *assignment.add_trials();
  trial.set_trial_id("s/1");
  trial.set_workload("w");
  trial.set_device_class("c");
  trial.set_compiler_version("v");
  return assignment;
}

class TrackerClientTest : public testing::Test {
 protected:
  ~TrackerClientTest() override {
    if (runtime_) runtime_->Stop();
    StopServer();
  }

  void StartServer() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_),
                             grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    port_ = port;
  }
  void StopServer() {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }

  void StartAgent() {
    client_ =
        std::make_unique<TrackerClient>(absl::StrCat("127.0.0.1:", port_));
    AgentLoop::Options options;
    options.hello.set_agent_id("a");
    options.hello.set_compiler_version("v");
    v1::DeviceInfo& device = *options.hello.add_devices();
    device.set_device_id("d");
    device.set_device_class("c");
    device.set_credit(2);
    auto spool =
        Spool::Open(std::make_unique<FakeSpoolStorage>(&disk_), SpoolLimits{});
    ASSERT_TRUE(spool.ok());
    runtime_ = std::make_unique<AgentRuntime>(options, &RealClock(), Random(1),
                                              *std::move(spool), client_.get());
    runner_ = std::make_unique<FakeRunner>(runtime_->ResultSink());
  }

  int port_ = 0;
  FakeFleetService service_;
  std::unique_ptr<grpc::Server> server_;
  FakeDisk disk_;
  std::unique_ptr<TrackerClient> client_;
  std::unique_ptr<FakeRunner> runner_;
  std::unique_ptr<AgentRuntime> runtime_;
};

TEST_F(TrackerClientTest, WorkGoesOutAndItsResultComesBack) {
  StartServer();
  StartAgent();
  service_.Assign(OneTrial());
  runtime_->Start(runner_.get());
  ASSERT_TRUE(service_.Await(&v1::AgentMessage::has_result_batch));
  // A heartbeat after the acknowledgement: nothing is left to deliver.
  const auto delivered = [this] {
    for (const v1::AgentMessage& message : service_.Received()) {
      if (message.has_heartbeat() &&
          message.heartbeat().spooled_results() == 0) {
        return true;
      }
    }
    return false;
  };
  for (size_t beats = 1; beats < 100 && !delivered(); ++beats) {
    ASSERT_TRUE(service_.Await(&v1::AgentMessage::has_heartbeat, beats));
  }
  EXPECT_TRUE(delivered());
  EXPECT_THAT(runner_->started_, ElementsAre("s/1"));
  std::vector<v1::AgentMessage> received = service_.Received();
  EXPECT_TRUE(received[0].has_hello());
  EXPECT_TRUE(received[1].assignment_reply().accepted())
      << received[1].DebugString();
}

TEST_F(TrackerClientTest, FindsARestartedTrackerAgain) {
  StartServer();
  StartAgent();
  runtime_->Start(runner_.get());
  ASSERT_TRUE(service_.Await(&v1::AgentMessage::has_heartbeat));
  StopServer();
  const SteadyTime back = RealClock().Steady();
  StartServer();
  ASSERT_TRUE(service_.Await(&v1::AgentMessage::has_hello, 2));
  EXPECT_LT(RealClock().Steady() - back, absl::Seconds(5));
}

TEST_F(TrackerClientTest, ComesUpBeforeItsTrackerDoes) {
  StartServer();  // takes a free port
  StopServer();
  StartAgent();
  runtime_->Start(runner_.get());
  StartServer();
  EXPECT_TRUE(service_.Await(&v1::AgentMessage::has_heartbeat));
}

TEST_F(TrackerClientTest, StoppingGivesWorkBackAndTakesUnderTwoSeconds) {
  StartServer();
  StartAgent();
  runner_->finishes_ = false;
  service_.Assign(OneTrial());
  runtime_->Start(runner_.get());
  ASSERT_TRUE(service_.Await(&v1::AgentMessage::has_assignment_reply));
  const SteadyTime start = RealClock().Steady();
  runtime_->Stop();
  EXPECT_LT(RealClock().Steady() - start, absl::Seconds(2));
  EXPECT_TRUE(service_.Await(&v1::AgentMessage::has_release));
  EXPECT_THAT(runner_->stopped_, ElementsAre("s/1"));
}

TEST_F(TrackerClientTest, ReportsTheStatusThatTheTrackerEndsWith) {
  StartServer();
  service_.AnswerWith({grpc::StatusCode::ABORTED, "a newer session took over"});
  client_ = std::make_unique<TrackerClient>(absl::StrCat("127.0.0.1:", port_));
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<absl::Status> closed;
  client_->Open({.on_message = [](v1::TrackerMessage) {},
                 .on_closed =
                     [&](absl::Status status) {
                       std::lock_guard lock(mutex);
                       closed.push_back(status);
                       changed.notify_all();
                     }});
  v1::AgentMessage hello;
  hello.mutable_hello()->set_agent_id("a");
  client_->Send(hello);
  std::unique_lock lock(mutex);
  ASSERT_TRUE(
      changed.wait_for(lock, kPatience, [&] { return !closed.empty(); }));
  EXPECT_EQ(closed[0].code(), absl::StatusCode::kAborted);
  EXPECT_EQ(closed[0].message(), "a newer session took over");
}

TEST_F(TrackerClientTest, NoCallbackComesAfterClose) {
  StartServer();
  client_ = std::make_unique<TrackerClient>(absl::StrCat("127.0.0.1:", port_));
  std::atomic<int> calls = 0;
  for (int i = 0; i < 20; ++i) {
    client_->Open({.on_message = [&](v1::TrackerMessage) { ++calls; },
                   .on_closed = [&](absl::Status) { ++calls; }});
    v1::AgentMessage hello;
    hello.mutable_hello()->set_agent_id("a");
    client_->Send(hello);
    client_->Close(absl::ZeroDuration());
    const int before = calls;
    client_->Send(hello);  // dropped
    EXPECT_EQ(calls, before);
  }
}

}  // namespace
}  // namespace regatta
