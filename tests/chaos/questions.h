// Questions to a server that may be away, asked one at a time in the background
// so that nobody waits for it.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_CHAOS_QUESTIONS_H_
#define REGATTA_TESTS_CHAOS_QUESTIONS_H_

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tests/chaos/cluster.h"

namespace regatta::testing {

using Json = nlohmann::json;

// The document of a command, waited for. Absent, after `limit`, when it failed;
// `why` then has its last words.
std::optional<Json> AskNow(const Cluster& cluster,
                           std::vector<std::string> arguments,
                           absl::Duration limit, std::string* why = nullptr);

// One question that is asked again and again.
class Question {
 public:
  using Answered = std::function<void(const Json&)>;

  // `every`: from one end to the next start.
  Question(const Cluster* cluster, absl::Duration every,
           std::vector<std::string> arguments, Answered answered);
  // Starts it when it is time, takes the answer when it is there. To be called
  // often.
  void Tend();

 private:
  const Cluster* const cluster_;
  const absl::Duration every_;
  const std::vector<std::string> arguments_;
  const Answered answered_;
  std::unique_ptr<Process> asked_;
  SteadyTime asked_at_, next_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_QUESTIONS_H_
