#include "proto/security/connection_gate.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/security/rate_limit.h"

namespace regatta {
namespace {

using Verdict = ConnectionGate::Verdict;

SteadyTime At(double seconds) { return SteadyTime{} + absl::Seconds(seconds); }

std::string Peer(int i) { return "p" + std::to_string(i); }

TEST(ConnectionGateTest, BoundsConnectionsOfAllKinds) {
  ConnectionGate gate(
      {.max_connections = 4, .max_unproven = 3, .max_unproven_per_address = 2});
  EXPECT_EQ(gate.Arrived("a1", "a", false, At(0)), Verdict::kTake);
  EXPECT_EQ(gate.Arrived("a2", "a", false, At(0)), Verdict::kTake);
  EXPECT_EQ(gate.Arrived("a3", "a", false, At(0)), Verdict::kUnproven);
  EXPECT_EQ(gate.Arrived("b1", "b", false, At(0)), Verdict::kTake);
  EXPECT_EQ(gate.Arrived("c1", "c", false, At(0)), Verdict::kUnproven);
  gate.Proven("a1", "x");
  gate.Proven("a1", "x");  // more calls change nothing
  EXPECT_EQ(gate.unproven(), 2);
  EXPECT_EQ(gate.Arrived("a3", "a", false, At(0)), Verdict::kTake);
  gate.Proven("a2", "x");
  EXPECT_EQ(gate.Arrived("d1", "d", false, At(0)), Verdict::kFull);
  gate.Ended("a1", At(1));
  EXPECT_EQ(gate.Arrived("d1", "d", false, At(1)), Verdict::kTake);
  EXPECT_EQ(gate.open(), 4);
}

TEST(ConnectionGateTest, AnAddressThatFailsIsServedOnceASecondForAMinute) {
  ConnectionGate gate({.failures_per_minute = 20});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(gate.Arrived(Peer(i), "bad", false, At(i * 0.1)), Verdict::kTake);
    gate.Ended(Peer(i), At(i * 0.1));
  }
  EXPECT_EQ(gate.Arrived("x", "bad", false, At(10)), Verdict::kTake);
  EXPECT_EQ(gate.Arrived("y", "bad", false, At(10.5)), Verdict::kBackOff);
  EXPECT_EQ(gate.Arrived("y", "bad", false, At(11)), Verdict::kTake);
  // Others are served as ever.
  EXPECT_EQ(gate.Arrived("z", "good", false, At(11.1)), Verdict::kTake);
  EXPECT_EQ(gate.Arrived("w", "bad", false, At(62)), Verdict::kTake);
  EXPECT_EQ(gate.Arrived("v", "bad", false, At(62.1)), Verdict::kTake);
}

TEST(ConnectionGateTest, ProvenConnectionsThatEndAreNoFailures) {
  ConnectionGate gate({.failures_per_minute = 2});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(gate.Arrived(Peer(i), "a", false, At(0)), Verdict::kTake);
    gate.Proven(Peer(i), "x");
    gate.Ended(Peer(i), At(0));
  }
}

TEST(ConnectionGateTest, SaysWhereWhatSomebodyDidCanBeFrom) {
  ConnectionGate gate(GateLimits{});
  EXPECT_EQ(gate.From("x"), "");
  gate.Arrived("a1", "a", false, At(0));
  EXPECT_EQ(gate.From(""), "a");
  gate.Arrived("a2", "a", false, At(0));
  gate.Arrived("b1", "b", false, At(0));
  gate.Proven("b1", "x");
  EXPECT_EQ(gate.From(""), "a");
  EXPECT_EQ(gate.From("x"), "a or b");
  gate.Ended("a1", At(1));
  EXPECT_EQ(gate.From("y"), "a");
  gate.Proven("a2", "y");
  EXPECT_EQ(gate.From(""), "");
  EXPECT_EQ(gate.From("x"), "b");
  gate.Ended("b1", At(1));
  EXPECT_EQ(gate.From("x"), "");
  for (int i = 0; i < 5; ++i) gate.Arrived(Peer(i), Peer(i), false, At(2));
  EXPECT_EQ(gate.From("x"), "one of several addresses");
}

TEST(ConnectionGateTest, LocalUsersDoNotLockOutOneAnother) {
  ConnectionGate gate({.failures_per_minute = 2});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(gate.Arrived(Peer(i), "127.0.0.1", true, At(0)), Verdict::kTake);
    gate.Ended(Peer(i), At(0));
  }
}

TEST(ConnectionGateTest, ForgetsAddressesWithTheirFailures) {
  ConnectionGate gate(GateLimits{});
  for (int i = 0; i < 1000; ++i) {
    gate.Arrived(Peer(i), Peer(i), false, At(0));
    gate.Ended(Peer(i), At(0));
  }
  gate.Tick(At(59));
  EXPECT_EQ(gate.addresses(), 1000u);
  gate.Tick(At(60));
  EXPECT_EQ(gate.addresses(), 0u);
}

TEST(ConnectionGateTest, APortThatComesBackBeforeItsEndWasSeenIsOneConnection) {
  ConnectionGate gate(GateLimits{});
  gate.Arrived("a1", "a", false, At(0));
  gate.Arrived("a1", "a", false, At(1));
  EXPECT_EQ(gate.open(), 1);
  EXPECT_EQ(gate.unproven(), 1);
}

TEST(RateLimitTest, TakesABurstAndThenAtItsPace) {
  RateLimit rate(8, 5, At(0));  // one every 1/8 s, exact in binary
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(rate.Take(1, At(0)));
  EXPECT_FALSE(rate.Take(1, At(0.0625)));
  EXPECT_TRUE(rate.Take(1, At(0.125)));
  EXPECT_FALSE(rate.Take(1, At(0.125)));
  // Never more than the burst, however long nothing came.
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(rate.Take(1, At(100)));
  EXPECT_FALSE(rate.Take(1, At(100)));
}

TEST(RateLimitTest, SaysHowLongUntilSoMuchIsThere) {
  RateLimit rate(8, 5, At(0));
  EXPECT_EQ(rate.WaitFor(5, At(0)), absl::ZeroDuration());
  ASSERT_TRUE(rate.Take(5, At(0)));
  EXPECT_EQ(rate.WaitFor(1, At(0)), absl::Milliseconds(125));
  EXPECT_EQ(rate.WaitFor(4, At(0.25)), absl::Milliseconds(250));
  EXPECT_EQ(rate.WaitFor(1, At(0.25)), absl::ZeroDuration());
}

TEST(RateLimitTest, OwingMakesTheNextWait) {
  RateLimit rate(10, 5, At(0));
  EXPECT_EQ(rate.Owe(5, At(0)), absl::ZeroDuration());
  EXPECT_EQ(rate.Owe(20, At(0)), absl::Seconds(2));
  EXPECT_EQ(rate.Owe(0, At(1)), absl::Seconds(1));
}

}  // namespace
}  // namespace regatta
