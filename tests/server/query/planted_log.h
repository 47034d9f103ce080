// A tuning log whose answers have every grade there is, and the questions that
// get them.
#ifndef REGATTA_TESTS_SERVER_QUERY_PLANTED_LOG_H_
#define REGATTA_TESTS_SERVER_QUERY_PLANTED_LOG_H_

#include <string>
#include <vector>

#include "regatta/v1/tuning_service.pb.h"
#include "storage/tuning_log.h"

namespace regatta::testing {

inline constexpr char kClassA[] = "znver4-2c";
inline constexpr char kClassB[] = "neoverse-n1-4c";

// Fills an empty log with records "measured" by `compiler`.
void PlantLog(TuningLog& log, const std::string& compiler);

// Fills an empty log with one record of each class.
void PlantLittle(TuningLog& log, const std::string& compiler);

// Adds one default that was measured on `device_class`, of kOtherTargetText.
void PlantOn(TuningLog& log, const std::string& compiler,
             const std::string& workload, const char* device_class);

// Over workloads in several spellings, classes, targets and policies; some make
// no sense.
std::vector<v1::BestRequest> PlantedQuestions();

// One line with everything that an answer says, but for its age.
std::string Line(const absl::StatusOr<v1::BestAnswer>& answer);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SERVER_QUERY_PLANTED_LOG_H_
