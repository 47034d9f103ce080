// Live progress of a job: a few lines that rewrite themselves on a terminal
// (for several tasks one for the job and one each), a line now and then
// elsewhere. Written to standard error, so that standard output holds results
// only.
#ifndef REGATTA_CLIENT_CLI_PROGRESS_H_
#define REGATTA_CLIENT_CLI_PROGRESS_H_

#include <iostream>
#include <ostream>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// "matmul(m=512,...) on znver4-2c  trial 37 of 200, 11.2/s, 15 s left, best
// 98.1 GFLOP/s (83 % of the measured peak)".
std::string ProgressLine(const v1::TaskStatus& task);

// "job 3: 2 of 3 tasks go on, 1 paused; trial 120 of 400,
// 11.3/s, 25 s left".
std::string JobLine(const v1::Job& job);

// Of standard error (or another descriptor); 80 by 24 where it is no terminal.
struct TerminalSize {
  size_t columns = 80;
  size_t rows = 24;
};
TerminalSize SizeOfTerminal(int fd = 2);

// `line` in at most `width` columns, "..." at its end where it was cut; never
// within a UTF-8 character.
std::string FitLine(std::string line, size_t width);

// Not thread-safe.
class ProgressDisplay {
 public:
  // Silent when `enabled` is false.
  ProgressDisplay(bool enabled, bool terminal, const Clock& clock,
                  std::ostream& out = std::cerr)
      : enabled_(enabled), terminal_(terminal), clock_(clock), out_(out) {}
  void Update(const v1::Job& job);
  // A line that stays, above the progress.
  void Note(std::string_view text);
  // What is shown stays.
  void Finish() { lines_ = 0; }

 private:
  void UpdatePlain(const v1::Job& job);
  void UpdateTerminal(const v1::Job& job);
  // Takes the rewriting lines away again.
  std::string Erase();

  bool enabled_;
  bool terminal_;
  const Clock& clock_;
  std::ostream& out_;
  SteadyTime last_;
  bool printed_ = false;
  int lines_ = 0;  // shown on the terminal now
  std::string last_text_;
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_PROGRESS_H_
