// Records in the auto-tuning community's results schema "T4", version 1.0.0, as
// Kernel Tuner writes it and the tools around it read it
// (kernel_tuner/schema/T4, autotuning_methodology).
//
// One JSON document: {"schema_version", "metadata", "results": [...]}. Times
// are in milliseconds. A result's configuration holds the workload, class,
// threads and cache, the sketch, and every knob by its name.
#ifndef REGATTA_CLIENT_CLI_T4_WRITER_H_
#define REGATTA_CLIENT_CLI_T4_WRITER_H_

#include <cstdint>
#include <string>

#include "regatta/v1/log_service.pb.h"

namespace regatta::cli {

// Not thread-safe. The texts that it returns, laid end to end, are the
// document.
class T4Writer {
 public:
  // `log_id` is noted in the metadata.
  std::string Begin(const std::string& log_id);
  // Empty for a record that T4 has no word for: what befell the board and not
  // the schedule, and schedules whose binary is another's.
  std::string Add(const v1::LoggedRecord& record);
  std::string End() const { return "\n]}\n"; }

  int64_t results() const { return results_; }
  int64_t left_out() const { return left_out_; }

 private:
  int64_t results_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_T4_WRITER_H_
