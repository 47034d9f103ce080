// A tracker with boards, in memory and on a fake clock: takes work, measures it
// against an invented landscape, loses, repeats and delays results as told.
#ifndef REGATTA_TESTS_SERVER_SUPPORT_SIMULATED_FLEET_H_
#define REGATTA_TESTS_SERVER_SUPPORT_SIMULATED_FLEET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "server/job/dispatcher.h"

namespace regatta::testing {

inline constexpr char kCompiler[] = "0123456789abcdef/LLVM test";
inline constexpr char kClass[] = "znver4-2c";

struct SimulatedBoard {
  std::string id;
  std::string device_class = kClass;
  std::string target;
  std::string compiler = kCompiler;
  std::string health = "ok";
  bool simulated = false;
  v1::Presence presence = v1::PRESENCE_ONLINE;
  int credit = 2;
  int cores = 2;
  double noise_floor = 0.002;
  int64_t memory_bytes = int64_t{64} << 30;
};

// What measuring a trial gives, before noise.
struct Measurement {
  v1::Outcome outcome = v1::OUTCOME_OK;
  std::string detail;
  int64_t time_ns = 0;
  std::string binary_hash;  // "": made from the schedule
};

class SimulatedFleet : public Dispatcher {
 public:
  struct Options {
    uint64_t seed = 1;
    double noise = 0.002;  // of a block, as a fraction
    double lose = 0;       // probability that a work ends agent_lost
    double repeat = 0;     // that a result is delivered twice
    double delay = 0;      // that a result is held back for a while
    std::function<Measurement(const v1::TrialSpec&)> measure;
  };
  SimulatedFleet(FakeClock* clock, Options options)
      : clock_(clock), options_(std::move(options)), random_(options_.seed) {}

  void AddBoard(SimulatedBoard board) { boards_.push_back(std::move(board)); }
  std::vector<SimulatedBoard>& boards() { return boards_; }
  Options& options() { return options_; }

  // The server comes (again): tells it what is held, the boards, and every
  // result that was not acknowledged.
  void Connect(Listener* listener);
  // The server is gone without a word, or (told) the stream broke.
  void Disconnect(bool tell);
  void SendFleet();
  // Carries out one held work, chosen at random. False: nothing is held.
  bool WorkOne();
  // Delivers what was held back.
  void Flush();

  void Submit(std::vector<v1::Work> work) override;
  void CancelWork(const v1::CancelWork& cancel) override;
  void Acknowledge(const v1::CommitAck& ack) override;
  void Reattach() override;
  void OfferCanaries(const v1::Canaries& canaries) override {
    canaries_.push_back(canaries);
  }
  void AskFleet() override { ++asked_; }

  const std::map<std::string, v1::Work>& held() const { return held_; }
  // Works as they were first submitted, in order.
  const std::vector<v1::Work>& submitted() const { return submitted_; }
  const std::vector<v1::TrialAck>& acks() const { return acks_; }
  const std::vector<v1::CancelWork>& cancels() const { return cancels_; }
  // One entry per offer.
  const std::vector<v1::Canaries>& canaries() const { return canaries_; }
  // How often the server asked for the fleet anew.
  int asked() const { return asked_; }
  int reattached() const { return reattached_; }
  // Results that the server has not acknowledged.
  const std::map<std::string, v1::TrialResult>& spool() const { return spool_; }
  // Delivers a result as it is, whoever asked for it.
  void Deliver(const v1::TrialResult& result);
  // One interleaved or single measurement of the trial on a board.
  v1::TrialResult Measure(const v1::TrialSpec& spec, bool interleaved,
                          const SimulatedBoard& board, uint64_t session);

 private:
  void Spool(v1::TrialResult result, bool may_delay);

  FakeClock* clock_;
  Options options_;
  Random random_;
  Listener* listener_ = nullptr;
  std::vector<SimulatedBoard> boards_;
  std::map<std::string, v1::Work> held_;
  std::set<std::string> known_;     // works ever submitted
  std::set<std::string> reported_;  // trials
  std::vector<v1::Work> submitted_;
  std::vector<v1::TrialAck> acks_;
  std::vector<v1::CancelWork> cancels_;
  std::vector<v1::Canaries> canaries_;
  int asked_ = 0;
  std::map<std::string, v1::TrialResult> spool_;
  std::vector<v1::TrialResult> delayed_;
  int reattached_ = 0;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SERVER_SUPPORT_SIMULATED_FLEET_H_
