// Progress of an operation that counts up to a total: a line that rewrites
// itself on a terminal, a line now and then elsewhere, both on standard error.
#ifndef REGATTA_CLIENT_CLI_RATE_PROGRESS_H_
#define REGATTA_CLIENT_CLI_RATE_PROGRESS_H_

#include <cstdint>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace regatta::cli {

// Not thread-safe. Nothing is shown of what ends within a second or so.
class RateProgress {
 public:
  // `unit` is what is counted: "records".
  RateProgress(std::string_view unit, bool terminal, const Clock& clock,
               std::ostream& out = std::cerr)
      : unit_(unit), terminal_(terminal), clock_(clock), out_(out) {}
  ~RateProgress() { Finish(); }
  RateProgress(const RateProgress&) = delete;

  // "reading records: 1200 of 50000 records, 8312.0/s, 5 s left". A total of 0
  // is unknown. The rate is over the time since the phase began.
  void Update(std::string_view phase, int64_t done, int64_t total);
  // Takes the rewriting line away.
  void Finish();

 private:
  std::string Line(int64_t done, int64_t total, absl::Duration elapsed) const;

  const std::string unit_;
  const bool terminal_;
  const Clock& clock_;
  std::ostream& out_;
  std::string phase_;
  std::optional<SteadyTime> phase_began_;
  int64_t done_before_ = 0;  // when the phase began
  std::optional<SteadyTime> last_shown_;
  bool line_shown_ = false;
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_RATE_PROGRESS_H_
