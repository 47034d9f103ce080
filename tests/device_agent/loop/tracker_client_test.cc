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
#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tests/device_agent/loop/fake_spool_storage.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;

constexpr std::chrono::seconds kPatience(20);

// Welcomes everyone, acknowledges heartbeats and results, and keeps what came.
class FakeFleetService : public v1::FleetService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::TrackerMessage, v1::AgentMessage>;

  grpc::Status Session(grpc::ServerContext*, Stream* stream) override {
    v1::AgentMessage in;
    while (stream->Read(&in)) {
      std::lock_guard lock(mutex_);
      received_.push_back(in);
      changed_.notify_all();
      if (!answer_.ok()) return answer_;
      v1::TrackerMessage out;
      if (in.has_hello()) {
        out.mutable_welcome()->set_tracker_epoch(++epoch_);
        out.mutable_welcome()->set_heartbeat_ms(100);
        out.mutable_welcome()->set_lease_ms(60'000);
        stream->Write(out);
        if (!assign_.assignment_id().empty()) {
          out.Clear();
          *out.mutable_assign()->mutable_assignment() = assign_;
          assign_.Clear();
          stream->Write(out);
        }
      } else if (in.has_heartbeat()) {
        out.mutable_heartbeat_ack()->set_sequence(in.heartbeat().sequence());
        out.mutable_heartbeat_ack()->set_lease_ms(60'000);
        *out.mutable_heartbeat_ack()->mutable_renewed() =
            in.heartbeat().held_assignment_ids();
        stream->Write(out);
      } else if (in.has_result_batch()) {
        for (const v1::SpooledResult& one : in.result_batch().results()) {
          v1::TrialAck& ack = *out.mutable_result_ack()->add_acks();
          ack.set_trial_id(one.result().spec().trial_id());
          ack.set_attempt(one.result().attempt());
          ack.set_status(v1::ACK_STATUS_STORED);
        }
        stream->Write(out);
      }
    }
    return grpc::Status::OK;
  }

  // Waits until a message of this kind came; false when none did.
  bool Await(bool (v1::AgentMessage::*has)() const, size_t count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      size_t found = 0;
      for (const v1::AgentMessage& m : received_) found += (m.*has)() ? 1 : 0;
      return found >= count;
    });
  }
  std::vector<v1::AgentMessage> Received() {
    std::lock_guard lock(mutex_);
    return received_;
  }
  void AssignNext(v1::Assignment assignment) {
    std::lock_guard lock(mutex_);
    assign_ = std::move(assignment);
  }
  void AnswerWith(grpc::Status status) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(status);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::AgentMessage> received_;
  v1::Assignment assign_;
  grpc::Status answer_;
  int64_t epoch_ = 0;
};

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
  service_.AssignNext(OneTrial());
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
  service_.AssignNext(OneTrial());
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
