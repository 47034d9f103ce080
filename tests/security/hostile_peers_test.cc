// Peers that mean harm: bytes that mean nothing, connections that never speak,
// messages that are too large or too many. The service goes on.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "regatta/v1/dispatch_service.grpc.pb.h"
#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tests/security/test_lab.h"
#include "tests/support/scale.h"

namespace regatta::testing {
namespace {

constexpr char kList[] = "DispatchService/ListDevices";

UniqueFd Connect(const std::string& address, const char* from = "127.0.0.1") {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here = {};
  here.sin_family = AF_INET;
  inet_pton(AF_INET, from, &here.sin_addr);
  sockaddr_in there = here;
  there.sin_port = htons(static_cast<uint16_t>(SplitHostPort(address)->second));
  inet_pton(AF_INET, "127.0.0.1", &there.sin_addr);
  bind(fd.get(), reinterpret_cast<sockaddr*>(&here), sizeof here);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) !=
      0) {
    fd.Reset();
  }
  return fd;
}

// Whether the other side closed it within `limit`.
bool Closed(const UniqueFd& fd, int seconds) {
  timeval limit = {seconds, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char byte;
  const ssize_t got = recv(fd.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

class HostilePeersTest : public ::testing::Test {
 protected:
  void ExpectService() {
    EXPECT_EQ(CallEmpty(Dial(tracker_.address(), viewer_), kList).error_code(),
              grpc::StatusCode::OK);
  }
  TestLab lab_;
  LabTracker tracker_{&lab_};
  const std::shared_ptr<TlsIdentity> viewer_ = lab_.Open(Role::kViewer, "vera");
};

TEST_F(HostilePeersTest, AMillionRandomBytesOnEachPort) {
  Random random(1);
  for (const std::string& port : {tracker_.address(), tracker_.enrol()}) {
    // In connections of all sizes, as the other side cuts them off.
    size_t sent = 0;
    int connections = 0;
    while (sent < 1'000'000 && connections < 2'000) {
      const UniqueFd fd = Connect(port);
      ASSERT_TRUE(fd.valid());
      ++connections;
      std::string bytes(1 + random.Below(16'384), '\0');
      for (char& byte : bytes) byte = static_cast<char>(random.Next());
      // A record that claims to be a handshake keeps the other side reading.
      if (connections % 3 == 0) bytes.replace(0, 3, "\x16\x03\x01");
      const ssize_t got =
          send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (got > 0) sent += static_cast<size_t>(got);
    }
    EXPECT_GE(sent, 1'000'000u);
    std::cout << sent << " bytes in " << connections << " connections\n";
  }
  ExpectService();
}

TEST_F(HostilePeersTest, ThreeHundredHalfOpenConnections) {
  std::vector<UniqueFd> open;
  for (int i = 0; i < 300; ++i) {
    open.push_back(Connect(tracker_.address()));
    ASSERT_TRUE(open.back().valid());
    // Every third stops in the middle of a handshake's first message.
    if (i % 3 == 0) {
      send(open.back().get(), "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL);
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  ExpectService();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  std::cout << "a call beside 300 half-open connections took " << seconds
            << " s\n";
  EXPECT_LT(seconds, 5);
  // They are given up after the time that a handshake has.
  for (const UniqueFd& fd : open) EXPECT_TRUE(Closed(fd, 30));
}

TEST(GateOverSocketsTest, AnAddressThatFailsWaitsWhileOthersAreServed) {
  TestLab lab;
  GateLimits gate;
  gate.failures_per_minute = 5;
  gate.back_off_loopback = true;
  LabTracker tracker(&lab, gate);
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    const UniqueFd fd = Connect(tracker.address(), "127.0.0.2");
    ASSERT_TRUE(fd.valid());
    send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    Closed(fd, 5);
    // The listener looks for closed connections every second.
    if (i % 10 == 9) {
      WaitFor(absl::Seconds(3), [&] {
        const UniqueFd probe = Connect(tracker.address(), "127.0.0.2");
        timeval moment = {0, 20'000};
        setsockopt(probe.get(), SOL_SOCKET, SO_RCVTIMEO, &moment,
                   sizeof moment);
        char byte;
        refused += recv(probe.get(), &byte, 1, 0) == 0 ? 1 : 0;
        return refused > 0;
      });
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_TRUE(WaitFor(absl::Seconds(5), [&] {
    return tracker.Audited({"127.0.0.2", "connection", "too many failed"});
  })) << tracker.AuditText();
  // From 127.0.0.1.
  EXPECT_EQ(
      CallEmpty(Dial(tracker.address(), lab.Open(Role::kViewer, "v")), kList)
          .error_code(),
      grpc::StatusCode::OK);
}

TEST_F(HostilePeersTest, MessagesThatAreTooLargeEndTheirSessionAndAreAudited) {
  for (const auto& [bytes, code] :
       {std::pair{2 << 20, grpc::StatusCode::INVALID_ARGUMENT},
        std::pair{9 << 20, grpc::StatusCode::RESOURCE_EXHAUSTED}}) {
    AgentSession agent(tracker_.address(), lab_.Open(Role::kAgent, "a1"));
    v1::AgentMessage large;
    large.mutable_release()->set_reason(std::string(bytes, 'x'));
    agent.stream().Write(large);
    EXPECT_EQ(agent.End().error_code(), code) << bytes;
  }
  EXPECT_TRUE(tracker_.Audited({"agent/a1", "Session", "bytes"}))
      << tracker_.AuditText();
  ExpectService();
}

TEST_F(HostilePeersTest, ResultsOfOthersEndTheSessionWithTheReason) {
  AgentSession agent(tracker_.address(), lab_.Open(Role::kAgent, "rogue"));
  v1::AgentMessage batch;
  for (int i = 0; i < 10; ++i) {
    v1::SpooledResult* spooled = batch.mutable_result_batch()->add_results();
    spooled->set_assignment_id(absl::StrCat("log/1/0/", i));
    spooled->mutable_result()->mutable_spec()->set_trial_id(
        absl::StrCat("1/0/", i));
    spooled->mutable_result()->set_outcome(v1::OUTCOME_OK);
    spooled->mutable_result()->set_attempt(1);
  }
  agent.stream().Write(batch);
  v1::TrackerMessage acks;
  ASSERT_TRUE(agent.stream().Read(&acks));
  EXPECT_EQ(acks.result_ack().acks_size(), 10);
  EXPECT_EQ(acks.result_ack().acks(0).reason(), "NOT_OWNER");
  const grpc::Status end = agent.End();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(end.error_message().find("does not hold"), std::string::npos);
  EXPECT_TRUE(tracker_.Audited({"agent/rogue", "ResultBatch"}))
      << tracker_.AuditText();
}

TEST(PaceTest, AnAgentThatFloodsIsReadAtItsPaceAndOthersAreServed) {
  TestLab lab;
  TrackerOptions options;
  options.messages_per_second = 100;
  LabTracker tracker(&lab, {}, options);
  AgentSession flood(tracker.address(), lab.Open(Role::kAgent, "a1"));
  constexpr int kMessages = 400;
  const auto begin = std::chrono::steady_clock::now();
  std::thread writer([&] {
    v1::AgentMessage beat;
    for (int i = 0; i < kMessages; ++i) {
      beat.mutable_heartbeat()->set_sequence(i);
      if (!flood.stream().Write(beat)) return;
    }
  });
  v1::TrackerMessage ack;
  int acks = 0;
  while (acks < kMessages && flood.stream().Read(&ack)) {
    acks += ack.has_heartbeat_ack() ? 1 : 0;
  }
  writer.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  EXPECT_EQ(acks, kMessages);
  // 200 at once, the rest at 100 a second.
  EXPECT_GT(seconds, 1.5);
  std::cout << kMessages << " messages took " << seconds << " s\n";
}

TEST_F(HostilePeersTest, ACallerThatAsksTooFastIsToldSo) {
  const auto channel = Dial(tracker_.address(), viewer_);
  const auto stub = v1::DispatchService::NewStub(channel);
  int refused = 0, served = 0;
  // 4,000 at once and 2,000 a second are let through.
  for (int i = 0; i < 30'000 && refused == 0; ++i) {
    grpc::ClientContext context;
    v1::ListDevicesResponse response;
    const grpc::Status status =
        stub->ListDevices(&context, v1::ListDevicesRequest(), &response);
    refused +=
        status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
    served += status.ok() ? 1 : 0;
  }
  // A machine on which one client cannot call so fast has nothing to refuse.
  if (refused == 0) {
    GTEST_SKIP() << "this machine made fewer than 2,000 calls a second";
  }
  EXPECT_GE(served, 4'000);
  EXPECT_EQ(
      CallEmpty(Dial(tracker_.address(), lab_.Open(Role::kViewer, "w")), kList)
          .error_code(),
      grpc::StatusCode::OK);
}

}  // namespace
}  // namespace regatta::testing
