#include "client/cli/rate_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/format.h"
#include "client/cli/progress.h"

namespace regatta::cli {
namespace {

constexpr absl::Duration kFirst = absl::Seconds(1);
constexpr absl::Duration kTerminalInterval = absl::Milliseconds(200);
constexpr absl::Duration kPlainInterval = absl::Seconds(5);

}  // namespace

std::string RateProgress::Line(int64_t done, int64_t total,
                               absl::Duration elapsed) const {
  std::string line = phase_;
  if (done == 0) return line;
  absl::StrAppend(&line, ": ", done);
  if (total > 0) absl::StrAppend(&line, " of ", total);
  absl::StrAppend(&line, " ", unit_);
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const double rate = seconds > 0 ? (done - done_before_) / seconds : 0;
  if (rate <= 0) return line;
  absl::StrAppendFormat(&line, ", %.*f/s", rate < 100 ? 1 : 0, rate);
  if (total >= done) {
    absl::StrAppend(&line, ", ",
                    FormatSpan(static_cast<int64_t>(
                        static_cast<double>(total - done) / rate * 1000)),
                    " left");
  }
  return line;
}

void RateProgress::Update(std::string_view phase, int64_t done, int64_t total) {
  const SteadyTime now = clock_.Steady();
  if (!phase_began_ || phase != phase_) {
    phase_ = std::string(phase);
    phase_began_ = now;
    done_before_ = done;
    if (!last_shown_) last_shown_ = now + (kFirst - kPlainInterval);
  }
  const absl::Duration interval =
      terminal_ && line_shown_ ? kTerminalInterval : kPlainInterval;
  if (now - *last_shown_ < interval) return;
  last_shown_ = now;
  const std::string line = Line(done, total, now - *phase_began_);
  if (terminal_) {
    out_ << "\r\x1b[K" << FitLine(line, SizeOfTerminal().columns - 1)
         << std::flush;
    line_shown_ = true;
  } else {
    out_ << line << "\n" << std::flush;
  }
}

void RateProgress::Finish() {
  if (line_shown_) out_ << "\r\x1b[K" << std::flush;
  line_shown_ = false;
}

}  // namespace regatta::cli
