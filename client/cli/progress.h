// Live progress of a job: one line that rewrites itself on a terminal, a line
// now and then elsewhere. Written to standard error, so that standard output
// holds results only.
#ifndef REGATTA_CLIENT_CLI_PROGRESS_H_
#define REGATTA_CLIENT_CLI_PROGRESS_H_

#include <string>

#include "base/clock.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// "matmul(m=512,...) on znver4-2c  trial 37 of 200, 11.2/s, 15 s left, best
// 98.1 GFLOP/s (83 % of the measured peak)".
std::string ProgressLine(const v1::TaskStatus& task);

// Not thread-safe.
class ProgressDisplay {
 public:
  // Silent when `enabled` is false.
  ProgressDisplay(bool enabled, bool terminal, const Clock& clock)
      : enabled_(enabled), terminal_(terminal), clock_(clock) {}
  void Update(const v1::Job& job);
  // Ends the rewriting line.
  void Finish();

 private:
  bool enabled_;
  bool terminal_;
  const Clock& clock_;
  SteadyTime last_;
  bool printed_ = false;
  int lines_ = 0;  // shown on the terminal now
  std::string last_text_;
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_PROGRESS_H_
