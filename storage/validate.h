// What every backend refuses before it stores anything.
#ifndef REGATTA_STORAGE_VALIDATE_H_
#define REGATTA_STORAGE_VALIDATE_H_

#include "absl/status/status.h"
#include "storage/tuning_log.h"

namespace regatta {

// The key that a result's record belongs to: the class of the device that ran
// it or, when none did, the class that it was asked for; imported by its
// provenance.
BestKey KeyOf(const v1::TrialResult& result);

// How the provenance of a record of another log begins: "import:NAME".
inline constexpr char kImportProvenance[] = "import:";

// Everything that a result must be by itself: asked of what a board sends, of
// what is appended or imported, and of what the check of a log reads. So no
// result that the check finds fault with is ever taken in. InvalidArgument
// names the trial and what is wrong with it. Whether its workload is known, and
// its ordinal was ever handed out, is for the backend to see.
absl::Status ValidateResult(const v1::TrialResult& result);
absl::Status ValidateWorkload(const WorkloadInfo& workload);
absl::Status ValidatePublication(const Publication& publication);

// Verified, timed to the end: may become the best of its key.
bool IsEligible(const v1::TrialResult& result);

}  // namespace regatta

#endif  // REGATTA_STORAGE_VALIDATE_H_
