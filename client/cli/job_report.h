// What came of a job, for people.
#ifndef REGATTA_CLIENT_CLI_JOB_REPORT_H_
#define REGATTA_CLIENT_CLI_JOB_REPORT_H_

#include <string>

#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// Per task: default's time, tuned time, speed-up with its interval, schedule,
// outcomes, what the log contributed, where a trial's time went.
std::string JobReport(const v1::Job& job);

// 0 done, exhausted or still going; 1 failed, cancelled or paused.
int JobExitCode(const v1::Job& job);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_JOB_REPORT_H_
