// Results on their way to a server's commit. An entry stays until the server
// acknowledged it, so that a server that was away gets it when it attaches, or
// until the server is given up; its agents' spools still have it then.
//
// Bounded: at the bound a result is refused and stays in its agent's spool.
// Not thread-safe.
#ifndef REGATTA_TRACKER_RESULT_BUFFER_H_
#define REGATTA_TRACKER_RESULT_BUFFER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "regatta/v1/trial.pb.h"

namespace regatta {

class ResultBuffer {
 public:
  ResultBuffer(int64_t max_results, int64_t max_bytes)
      : max_results_(max_results), max_bytes_(max_bytes) {}

  enum class Added { kNew, kKnown, kFull };
  // `agent_id` is the sender, "" for the tracker's own verdicts, which are
  // never refused: their number is bounded by that of the work.
  Added Add(std::string_view server_id, std::string_view agent_id,
            const v1::TrialResult& result);

  // Removes the results of this attempt; returns the agents that sent them.
  // Several can have sent the same attempt when the tracker was restarted
  // meanwhile; the acknowledgement is about the trial and holds for each.
  std::vector<std::string> Acknowledge(std::string_view server_id,
                                       std::string_view trial_id, int attempt);

  // Removes all that waits for the server; returns the agents that sent it.
  std::set<std::string> DropServer(std::string_view server_id);

  // The attempt of a buffered result of the trial; 0: none.
  int AttemptOf(std::string_view server_id, std::string_view trial_id) const;
  // Oldest first.
  std::vector<const v1::TrialResult*> OfServer(
      std::string_view server_id) const;

  // How full, as a fraction of the tighter bound.
  double Level() const;
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }

 private:
  // Server, trial, attempt, agent.
  using Key = std::tuple<std::string, std::string, int, std::string>;
  struct Entry {
    v1::TrialResult result;
    int64_t sequence = 0;
    int64_t bytes = 0;
  };
  int64_t max_results_;
  int64_t max_bytes_;
  int64_t bytes_ = 0;
  int64_t sequence_ = 0;
  std::map<Key, Entry> entries_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_RESULT_BUFFER_H_
