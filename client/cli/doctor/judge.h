// What several areas of the doctor judge alike.
#ifndef REGATTA_CLIENT_CLI_DOCTOR_JUDGE_H_
#define REGATTA_CLIENT_CLI_DOCTOR_JUDGE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "client/cli/doctor/doctor.h"

namespace regatta::cli {

// Clocks further apart are worth a word: certificates and dates of records bear
// more, and nothing is timed by them.
inline constexpr int64_t kSkewMs = 2'000;
bool IsSkewed(int64_t offset_ms);
// "12 ms ahead of", "12 ms behind"
std::string OffsetText(int64_t offset_ms);

// The part of a compiler's version that is the same for all kinds of target.
std::string_view SourcesOf(std::string_view compiler_version);

// Of clocks that are not held (UncontrolledClocks' text): what was found, and
// the commands that mend it one after the other, "" where there are none.
struct ClockVerdict {
  std::string what;
  std::string remedy;
};
ClockVerdict JudgeClocks(std::string_view uncontrolled);

// Of a question that was not answered, by the client's words: who did not
// answer, and whether it takes connections and then says nothing.
Finding JudgeSilence(const std::string& message);

// Of all boards that the tracker knows.
Finding ExamineBoards(const v1::ListDevicesResponse& fleet);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_DOCTOR_JUDGE_H_
