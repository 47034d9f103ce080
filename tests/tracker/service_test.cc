// The tracker over real sockets on loopback, with an agent and a server made of
// plain stubs.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "regatta/v1/dispatch_service.grpc.pb.h"
#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tests/tracker/core_fixture.h"
#include "tracker/tracker_service.h"

namespace regatta {
namespace {

// One end of a stream with blocking reads. Its deadline keeps a broken test
// from hanging.
template <typename Stub, typename Out, typename In>
struct Stream {
  std::unique_ptr<Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<Out, In>> stream;

  explicit Stream(const std::shared_ptr<grpc::Channel>& channel)
      : stub(std::make_unique<Stub>(channel)) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
  }
  // Reads until `wanted` is true of a message.
  template <typename Predicate>
  In Next(Predicate wanted) {
    In message;
    while (stream->Read(&message)) {
      if (wanted(message)) return message;
    }
    ADD_FAILURE() << "the stream ended: " << stream->Finish().error_message();
    return {};
  }
  grpc::Status End() {
    In message;
    while (stream->Read(&message)) {
    }
    return stream->Finish();
  }
};

struct AgentStub
    : Stream<v1::FleetService::Stub, v1::AgentMessage, v1::TrackerMessage> {
  explicit AgentStub(const std::shared_ptr<grpc::Channel>& channel)
      : Stream(channel) {
    stream = stub->Session(&context);
  }
  void Hello(const std::string& id) {
    v1::AgentMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
    hello->set_agent_id(id);
    hello->set_instance_id("i1");
    v1::DeviceInfo* device = hello->add_devices();
    device->set_device_id("d-" + id);
    device->set_device_class("x");
    device->set_credit(1);
    ASSERT_TRUE(stream->Write(message));
    Next([](const auto& m) { return m.has_welcome(); });
  }
  v1::Assignment NextAssignment() {
    return Next([](const auto& m) { return m.has_assign(); })
        .assign()
        .assignment();
  }
  void Finish(const v1::Assignment& assignment) {
    v1::AgentMessage message;
    v1::SpooledResult* spooled = message.mutable_result_batch()->add_results();
    spooled->set_assignment_id(assignment.assignment_id());
    spooled->set_last(true);
    *spooled->mutable_result()->mutable_spec() = assignment.trials(0);
    spooled->mutable_result()->set_outcome(v1::OUTCOME_OK);
    spooled->mutable_result()->set_attempt(assignment.attempt());
    spooled->mutable_result()->set_lease_epoch(assignment.lease_epoch());
    ASSERT_TRUE(stream->Write(message));
  }
};

struct ServerStub : Stream<v1::DispatchService::Stub, v1::DispatchRequest,
                           v1::DispatchEvent> {
  explicit ServerStub(const std::shared_ptr<grpc::Channel>& channel)
      : Stream(channel) {
    stream = stub->Dispatch(&context);
  }
  void Attach(const std::string& id) {
    v1::DispatchRequest request;
    request.mutable_attach()->set_server_id(id);
    ASSERT_TRUE(stream->Write(request));
    Next([](const auto& e) { return e.has_attached(); });
  }
  void Submit(int count, const std::string& workload = "") {
    v1::DispatchRequest request;
    for (int i = 0; i < count; ++i) {
      v1::Work* work = request.mutable_submit()->add_work();
      work->set_work_id(absl::StrCat("1/0/", i));
      work->set_job_id(1);
      work->set_device_class("x");
      work->add_trials()->set_trial_id(work->work_id());
      work->mutable_trials(0)->set_workload(workload);
    }
    ASSERT_TRUE(stream->Write(request));
  }
};

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    options_.fleet.auto_approve.local = true;
    StartService();
  }
  void StartService() {
    auto started = TrackerService::Start("127.0.0.1:0", options_, RealClock(),
                                         random_, store_);
    EXPECT_TRUE(started.ok()) << started.status().message();
    service_ = std::move(*started);
  }
  std::shared_ptr<grpc::Channel> Channel() {
    return grpc::CreateChannel(service_->address(),
                               grpc::InsecureChannelCredentials());
  }

  TrackerOptions options_;
  Random random_{1};
  MemoryFleetStore store_;
  std::unique_ptr<TrackerService> service_;
};

TEST_F(ServiceTest, ATrialGoesOutAndItsResultComesBackAndIsAcked) {
  AgentStub agent(Channel());
  agent.Hello("a1");
  ServerStub server(Channel());
  server.Attach("log1");
  server.Submit(1);
  const v1::Assignment assignment = agent.NextAssignment();
  EXPECT_EQ(assignment.trials(0).trial_id(), "1/0/0");
  agent.Finish(assignment);
  const v1::DispatchEvent event =
      server.Next([](const auto& e) { return e.has_results(); });
  ASSERT_EQ(event.results().results_size(), 1);
  v1::DispatchRequest commit;
  v1::TrialAck* ack = commit.mutable_commit_ack()->add_acks();
  ack->set_trial_id("1/0/0");
  ack->set_attempt(1);
  ack->set_status(v1::ACK_STATUS_STORED);
  server.stream->Write(commit);
  const v1::TrackerMessage acked =
      agent.Next([](const auto& m) { return m.has_result_ack(); });
  EXPECT_EQ(acked.result_ack().acks(0).trial_id(), "1/0/0");
}

TEST_F(ServiceTest, ABoardNeverWaitsForATickBetweenTwoTrials) {
  AgentStub agent(Channel());
  agent.Hello("a1");
  ServerStub server(Channel());
  server.Attach("log1");
  constexpr int kTrials = 300;
  server.Submit(kTrials);
  std::vector<double> waits_ms;
  v1::Assignment assignment = agent.NextAssignment();
  for (int i = 1; i < kTrials; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    agent.Finish(assignment);
    assignment = agent.NextAssignment();
    waits_ms.push_back(std::chrono::duration<double, std::milli>(
                           std::chrono::steady_clock::now() - begin)
                           .count());
  }
  std::nth_element(waits_ms.begin(), waits_ms.begin() + kTrials / 2,
                   waits_ms.end());
  std::cout << "median from result to next assignment: "
            << waits_ms[kTrials / 2] << " ms over loopback\n";
  // Far below a tick of 500 ms, with room for a busy machine.
  EXPECT_LT(waits_ms[kTrials / 2], 10);
}

TEST_F(ServiceTest, TheOlderOfTwoSessionsOfAnAgentEndsWithAborted) {
  AgentStub older(Channel());
  older.Hello("a1");
  AgentStub newer(Channel());
  newer.Hello("a1");
  EXPECT_EQ(older.End().error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(ServiceTest, MessagesThatAreTooLargeEndTheirSessionOnly) {
  AgentStub good(Channel());
  good.Hello("a1");
  for (const auto& [bytes, code] :
       {std::pair{2 << 20, grpc::StatusCode::INVALID_ARGUMENT},
        std::pair{9 << 20, grpc::StatusCode::RESOURCE_EXHAUSTED}}) {
    AgentStub bad(Channel());
    v1::AgentMessage message;
    message.mutable_hello()->set_boot_id(std::string(bytes, 'x'));
    bad.stream->Write(message);
    EXPECT_EQ(bad.End().error_code(), code) << bytes;
  }
  ServerStub server(Channel());
  server.Attach("log1");
  server.Submit(1);
  EXPECT_EQ(good.NextAssignment().assignment_id(), "log1/1/0/0");
}

TEST_F(ServiceTest, BytesThatAreNoMessageEndTheirSessionOnly) {
  AgentStub good(Channel());
  good.Hello("a1");
  grpc::GenericStub stub(Channel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareCall(&context, "/regatta.v1.FleetService/Session", &queue);
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  call->StartCall(nullptr);
  ASSERT_TRUE(done());
  // A length that goes on beyond the end.
  const grpc::Slice slice(std::string("\x0a\xff\xff\xff\x7f garbage"));
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  done();
  // gRPC does not say to the tracker why reading ended, nor to the peer.
  grpc::Status status;
  call->Finish(&status, nullptr);
  done();
  queue.Shutdown();
  EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ServerStub server(Channel());
  server.Attach("log1");
  server.Submit(1);
  EXPECT_EQ(good.NextAssignment().assignment_id(), "log1/1/0/0");
}

TEST_F(ServiceTest, FieldsOfLaterReleasesAreIgnored) {
  AgentStub agent(Channel());
  v1::AgentMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
  hello->set_agent_id("a1");
  hello->set_instance_id("i1");
  hello->GetReflection()->MutableUnknownFields(hello)->AddVarint(9'000, 7);
  hello->GetReflection()
      ->MutableUnknownFields(hello)
      ->AddLengthDelimited(9'001)
      ->assign("of another release");
  ASSERT_TRUE(agent.stream->Write(message));
  agent.Next([](const auto& m) { return m.has_welcome(); });
}

TEST_F(ServiceTest, AnAgentThatDoesNotReadIsCutOffAndTheOthersGoOn) {
  options_.accept = absl::Milliseconds(500);
  options_.unread = absl::Seconds(1);
  service_.reset();
  StartService();
  // As agents: the window does not grow with what comes.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  AgentStub deaf(grpc::CreateCustomChannel(
      service_->address(), grpc::InsecureChannelCredentials(), arguments));
  deaf.Hello("deaf");
  ServerStub server(Channel());
  server.Attach("log1");
  // More than fits into the peer's window.
  server.Submit(1, std::string(600 << 10, 'x'));
  const auto begin = std::chrono::steady_clock::now();
  server.Next([](const auto& e) {
    return e.fleet_change().devices_size() > 0 &&
           e.fleet_change().devices(0).presence() == v1::PRESENCE_SUSPECT;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  AgentStub good(Channel());
  good.Hello("good");
  EXPECT_EQ(good.NextAssignment().assignment_id(), "log1/1/0/0");
  EXPECT_FALSE(deaf.End().ok());
}

TEST_F(ServiceTest, AnAgentThatGoesAwayIsSuspectAtOnce) {
  auto agent = std::make_unique<AgentStub>(Channel());
  agent->Hello("a1");
  ServerStub server(Channel());
  server.Attach("log1");
  agent->context.TryCancel();
  const v1::DispatchEvent event = server.Next([](const auto& e) {
    return e.fleet_change().devices_size() > 0 &&
           e.fleet_change().devices(0).presence() == v1::PRESENCE_SUSPECT;
  });
  EXPECT_EQ(event.fleet_change().devices(0).info().device_id(), "d-a1");
}

TEST_F(ServiceTest, DevicesAreListed) {
  AgentStub agent(Channel());
  agent.Hello("a1");
  auto stub = v1::DispatchService::NewStub(Channel());
  grpc::ClientContext context;
  v1::ListDevicesResponse response;
  ASSERT_TRUE(
      stub->ListDevices(&context, v1::ListDevicesRequest(), &response).ok());
  ASSERT_EQ(response.devices_size(), 1);
  EXPECT_EQ(response.devices(0).agent_id(), "a1");
  EXPECT_EQ(response.devices(0).state(), "idle");
}

TEST_F(ServiceTest, StoppingSaysGoodbyeAndEndsWithinAboutASecond) {
  AgentStub agent(Channel());
  agent.Hello("a1");
  AgentStub silent(Channel());  // never says Hello, never reads
  ServerStub server(Channel());
  server.Attach("log1");
  const auto begin = std::chrono::steady_clock::now();
  service_->Stop(absl::Seconds(1));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  const v1::TrackerMessage last =
      agent.Next([](const auto& m) { return m.has_goodbye(); });
  EXPECT_EQ(last.goodbye().reconnect_after_ms(), 1000);
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServiceTest, ATakenPortIsAnErrorThatNamesIt) {
  MemoryFleetStore store;
  const auto second = TrackerService::Start(service_->address(), options_,
                                            RealClock(), random_, store);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()),
              testing::AllOf(testing::HasSubstr(service_->address()),
                             testing::HasSubstr("Address already in use")));
}

TEST_F(ServiceTest, AnAddressThatIsNoneIsRefused) {
  MemoryFleetStore store;
  for (const char* address : {"nonsense", ":80", "host:", "host:99999", ""}) {
    const auto service =
        TrackerService::Start(address, options_, RealClock(), random_, store);
    ASSERT_FALSE(service.ok()) << address;
    EXPECT_EQ(service.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ServiceTest, ManySessionsThatComeAndGoLeaveNothingBehind) {
  const auto channel = Channel();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<AgentStub>> agents;
    for (int i = 0; i < 20; ++i) {
      agents.push_back(std::make_unique<AgentStub>(channel));
      agents.back()->Hello(absl::StrCat("a", i));
    }
    // Half go politely, half are cut off.
    for (size_t i = 0; i < agents.size(); ++i) {
      if (i % 2 == 0) {
        agents[i]->stream->WritesDone();
        EXPECT_TRUE(agents[i]->End().ok());
      } else {
        agents[i]->context.TryCancel();
      }
    }
  }
  service_->Stop(absl::Seconds(5));
}

}  // namespace
}  // namespace regatta
