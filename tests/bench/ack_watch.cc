// ack_watch: stands between an agent and its tracker, changes nothing and times
// how long the agent's results wait for their acknowledgement: from the first
// byte of the message that holds a result, which is on the agent's disk by
// then, to that of the message that acknowledges it, which is in the tuning log
// by then. Plain text only.
//
// Prints where it listens; on SIGTERM or Ctrl-C, one JSON document, in ms.
#include <pthread.h>
#include <signal.h>

#include <array>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/clock.h"
#include "base/robust_stats.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/grpc_messages.h"

namespace regatta::testing {
namespace {

constexpr char kCanary[] = "~canary/";

template <typename Message>
Message Parsed(std::string_view bytes) {
  Message message;
  message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  return message;
}

// Thread-safe.
class Watch {
 public:
  FaultProxy::Tap Tap() {
    return [this](int64_t connection, FaultProxy::Direction direction,
                  std::string_view bytes) {
      std::lock_guard lock(mutex_);
      if (bytes.empty()) {
        connections_.erase(connection);
        return;
      }
      const bool sent = direction == FaultProxy::Direction::kToTarget;
      connections_[connection][sent ? 0 : 1].Feed(
          bytes, [&](std::string_view message) {
            sent ? Sent(Parsed<v1::AgentMessage>(message))
                 : Acked(Parsed<v1::TrackerMessage>(message));
          });
    };
  }
  nlohmann::json Document() const {
    std::lock_guard lock(mutex_);
    nlohmann::json document = {{"results", acked_ms_.size()}};
    const auto add = [&](const std::string& name,
                         const std::vector<double>& values) {
      if (values.empty()) return;
      document[name + "_median"] = Median(values);
      document[name + "_p90"] = Quantile(values, 0.9);
    };
    add("result_to_ack_ms", acked_ms_);
    add("timed_to_sent_ms", sent_ms_);
    return document;
  }

 private:
  using Key = std::pair<std::string, int>;  // trial, attempt

  void Sent(const v1::AgentMessage& message) {
    const SteadyTime now = RealClock().Steady();
    for (const v1::SpooledResult& one : message.result_batch().results()) {
      const v1::TrialResult& result = one.result();
      const std::string& trial = result.spec().trial_id();
      if (trial.starts_with(kCanary)) continue;
      // Sent again: it waits since the first time.
      if (!sent_.emplace(Key(trial, result.attempt()), now).second) continue;
      if (result.timed_end_boot_ns() > 0) {
        sent_ms_.push_back(
            static_cast<double>(now.ns - result.timed_end_boot_ns()) / 1e6);
      }
    }
  }
  void Acked(const v1::TrackerMessage& message) {
    const SteadyTime now = RealClock().Steady();
    for (const v1::TrialAck& ack : message.result_ack().acks()) {
      const auto it = sent_.find(Key(ack.trial_id(), ack.attempt()));
      if (it == sent_.end()) continue;
      acked_ms_.push_back(absl::ToDoubleMilliseconds(now - it->second));
      sent_.erase(it);
    }
  }

  mutable std::mutex mutex_;
  std::map<int64_t, std::array<GrpcMessages, 2>> connections_;
  std::map<Key, SteadyTime> sent_;
  std::vector<double> acked_ms_, sent_ms_;
};

int Run(const std::string& target) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Watch watch;
  auto proxy = FaultProxy::Start(target, watch.Tap());
  if (!proxy.ok()) {
    std::cerr << "ack_watch: " << proxy.status().message() << std::endl;
    return 1;
  }
  std::cout << (*proxy)->address() << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  std::cout << watch.Document().dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace regatta::testing

int main(int argc, char** argv) {
  std::string target;
  CLI::App app("Times how long an agent's results wait for acknowledgement");
  app.add_option("--target", target, "The tracker")
      ->type_name("HOST:PORT")
      ->required();
  CLI11_PARSE(app, argc, argv);
  return regatta::testing::Run(target);
}
