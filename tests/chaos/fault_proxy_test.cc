// The proxy's faults, each as the two ends of a connection see it.
#include "tests/support/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

using Direction = FaultProxy::Direction;
constexpr absl::Duration kPatience = absl::Seconds(10);
// Long enough for anything on loopback to arrive that would.
constexpr absl::Duration kMoment = absl::Milliseconds(100);

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// What happened to one end by `limit`: "" nothing, "data", "end" or "reset".
std::string See(const UniqueFd& socket, absl::Duration limit) {
  pollfd polled = {socket.get(), POLLIN, 0};
  if (poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(limit))) ==
      0) {
    return "";
  }
  char byte;
  const ssize_t got = recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return "data";
  return got == 0 ? "end" : errno == ECONNRESET ? "reset" : "error";
}

class FaultProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in here = Loopback(0);
    socklen_t size = sizeof(here);
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    ASSERT_EQ(bind(listener_.get(), address, size), 0);
    ASSERT_EQ(listen(listener_.get(), 16), 0);
    ASSERT_EQ(getsockname(listener_.get(), address, &size), 0);
    auto proxy = FaultProxy::Start(
        absl::StrCat("127.0.0.1:", ntohs(here.sin_port)),
        [this](int64_t, Direction direction, std::string_view bytes) {
          tapped_[direction == Direction::kToTarget ? 0 : 1].append(bytes);
        });
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxy_ = *std::move(proxy);
  }

  UniqueFd Dial() {
    UniqueFd dialler(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string address = proxy_->address();
    const sockaddr_in to =
        Loopback(std::stoi(address.substr(address.rfind(':') + 1)));
    EXPECT_EQ(connect(dialler.get(), reinterpret_cast<const sockaddr*>(&to),
                      sizeof(to)),
              0);
    return dialler;
  }
  // Both ends of a connection through the proxy.
  void Connect() {
    dialler_ = Dial();
    ASSERT_EQ(See(listener_, kPatience), "error");  // somebody waits
    target_ =
        UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(target_.valid());
    Exchange();
  }
  void Send(const UniqueFd& from, const std::string& bytes) {
    ASSERT_EQ(send(from.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string Receive(const UniqueFd& to, size_t count) {
    std::string bytes(count, '\0');
    size_t have = 0;
    while (have < count && See(to, kPatience) == "data") {
      have += static_cast<size_t>(
          std::max<ssize_t>(0, recv(to.get(), &bytes[have], count - have, 0)));
    }
    bytes.resize(have);
    return bytes;
  }
  void Exchange() {
    Send(dialler_, "ask");
    EXPECT_EQ(Receive(target_, 3), "ask");
    Send(target_, "answer");
    EXPECT_EQ(Receive(dialler_, 6), "answer");
  }

  UniqueFd listener_, dialler_, target_;
  std::string tapped_[2];
  std::unique_ptr<FaultProxy> proxy_;
};

TEST_F(FaultProxyTest, ForwardsBothWaysAndCounts) {
  Connect();
  const FaultProxy::Counts counts = proxy_->counts();
  EXPECT_EQ(counts.accepted, 1);
  EXPECT_EQ(counts.open, 1);
  EXPECT_EQ(counts.to_target_bytes, 3);
  EXPECT_EQ(counts.from_target_bytes, 6);
  EXPECT_EQ(counts.reset, 0);
  proxy_.reset();  // ends its thread
  EXPECT_EQ(tapped_[0], "ask");
  EXPECT_EQ(tapped_[1], "answer");
}

TEST_F(FaultProxyTest, PassesTheEndOfEachDirectionOn) {
  Connect();
  Send(dialler_, "last");
  shutdown(dialler_.get(), SHUT_WR);
  EXPECT_EQ(Receive(target_, 4), "last");
  EXPECT_EQ(See(target_, kPatience), "end");
  Send(target_, "still");
  EXPECT_EQ(Receive(dialler_, 5), "still");
  target_.Reset();
  EXPECT_EQ(See(dialler_, kPatience), "end");
  EXPECT_TRUE(WaitFor(kPatience, [&] { return proxy_->counts().open == 0; }));
  EXPECT_EQ(proxy_->counts().reset, 0);
}

TEST_F(FaultProxyTest, CutResetsBothEndsAndLetsNewcomersIn) {
  Connect();
  proxy_->Cut();
  EXPECT_EQ(See(dialler_, kPatience), "reset");
  EXPECT_EQ(See(target_, kPatience), "reset");
  Connect();
  EXPECT_EQ(proxy_->counts().reset, 1);
}

TEST_F(FaultProxyTest, AnEndThatIsResetResetsTheOther) {
  Connect();
  const linger now = {1, 0};
  setsockopt(target_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  target_.Reset();
  EXPECT_EQ(See(dialler_, kPatience), "reset");
}

TEST_F(FaultProxyTest, CutAfterLetsSoManyBytesThrough) {
  Connect();
  proxy_->CutAfter(Direction::kToTarget, 5);
  Send(dialler_, "1234567");
  EXPECT_EQ(Receive(target_, 5), "12345");
  EXPECT_EQ(See(target_, kPatience), "reset");
  EXPECT_EQ(See(dialler_, kPatience), "reset");
}

TEST_F(FaultProxyTest, NewcomersAreCutWhereTheirNumberSays) {
  Connect();
  proxy_->CutNewcomers([](int64_t connection) {
    return connection == 2 ? std::optional<FaultProxy::CutPoint>(
                                 {Direction::kFromTarget, 3})
                           : std::nullopt;
  });
  Exchange();  // it was there before
  dialler_ = Dial();
  ASSERT_EQ(See(listener_, kPatience), "error");  // somebody waits
  target_ = UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Send(dialler_, "ask");
  EXPECT_EQ(Receive(target_, 3), "ask");
  Send(target_, "answer");
  EXPECT_EQ(Receive(dialler_, 3), "ans");
  EXPECT_EQ(See(dialler_, kPatience), "reset");
  Connect();  // the third
}

TEST_F(FaultProxyTest, HeldIsHalfOpenUntilItGoesOn) {
  Connect();
  proxy_->Hold(Direction::kToTarget, true);
  proxy_->Hold(Direction::kFromTarget, true);
  Send(dialler_, "to");
  Send(target_, "from");
  EXPECT_EQ(See(target_, kMoment), "");
  EXPECT_EQ(See(dialler_, kMoment), "");
  // Nor does one end hear that the other is gone, however it went.
  target_.Reset();
  EXPECT_EQ(See(dialler_, kMoment), "");
  EXPECT_EQ(proxy_->counts().open, 1);
  proxy_->Heal();
  EXPECT_EQ(Receive(dialler_, 4), "from");
}

TEST_F(FaultProxyTest, OneDirectionCanBeHeldAlone) {
  Connect();
  proxy_->Hold(Direction::kFromTarget, true);
  Send(dialler_, "to");
  EXPECT_EQ(Receive(target_, 2), "to");
  Send(target_, "from");
  EXPECT_EQ(See(dialler_, kMoment), "");
  proxy_->Hold(Direction::kFromTarget, false);
  EXPECT_EQ(Receive(dialler_, 4), "from");
}

TEST_F(FaultProxyTest, RefusesNewcomersAlone) {
  Connect();
  proxy_->Refuse(true);
  const UniqueFd refused = Dial();
  EXPECT_EQ(See(refused, kPatience), "reset");
  Exchange();
  proxy_->Heal();
  Connect();
}

TEST_F(FaultProxyTest, ATargetThatIsGoneIsAReset) {
  listener_.Reset();
  const UniqueFd dialler = Dial();
  EXPECT_EQ(See(dialler, kPatience), "reset");
}

TEST_F(FaultProxyTest, DelaysWithoutReordering) {
  Connect();
  proxy_->Delay(absl::Milliseconds(200));
  const SteadyTime start = RealClock().Steady();
  for (const char* part : {"a", "b", "c"}) Send(dialler_, part);
  EXPECT_EQ(Receive(target_, 3), "abc");
  EXPECT_GE(RealClock().Steady() - start, absl::Milliseconds(200));
  // What waits when it ends does not wait any longer.
  proxy_->Delay(absl::Hours(1));
  Send(dialler_, "d");
  EXPECT_EQ(See(target_, kMoment), "");
  proxy_->Heal();
  EXPECT_EQ(Receive(target_, 1), "d");
}

TEST_F(FaultProxyTest, ThrottlesToARate) {
  Connect();
  proxy_->Throttle(20'000);
  const SteadyTime start = RealClock().Steady();
  Send(dialler_, std::string(10'000, 'x'));
  EXPECT_EQ(Receive(target_, 10'000).size(), 10'000u);
  // Half a second's worth; the first tenth of a second's goes at once.
  EXPECT_GE(RealClock().Steady() - start, absl::Milliseconds(380));
}

TEST_F(FaultProxyTest, CorruptsOneBit) {
  Connect();
  proxy_->CorruptByte(Direction::kFromTarget);
  Send(target_, "bbb");
  EXPECT_EQ(Receive(dialler_, 3), "cbb");
  Exchange();
  EXPECT_EQ(proxy_->counts().corrupted, 1);
}

TEST_F(FaultProxyTest, MuchGoesThroughUnchanged) {
  Connect();
  std::string sent(3 << 20, '\0');
  for (size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<char>(i * 31 / 7);
  }
  std::thread sender([&] { Send(dialler_, sent); });
  EXPECT_TRUE(Receive(target_, sent.size()) == sent);
  sender.join();
}

TEST(FaultProxyAddressTest, WhatIsNoAddressIsRefused) {
  for (const char* target : {"", "here", "localhost:80", "127.0.0.1:99999"}) {
    EXPECT_EQ(FaultProxy::Start(target).status().code(),
              absl::StatusCode::kInvalidArgument)
        << target;
  }
}

}  // namespace
}  // namespace regatta::testing
