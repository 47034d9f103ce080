// What may be said of a row of the same workload under another key: evidence of
// another class or policy, or of another log. It is a suggestion, never an
// answer that is compiled before it was timed here.
#ifndef REGATTA_SERVER_QUERY_NEIGHBOURS_H_
#define REGATTA_SERVER_QUERY_NEIGHBOURS_H_

#include <string>

#include "compiler/target/target.h"
#include "storage/best_source.h"

namespace regatta {

// Whether `row_target` is text of a target of the kind and architecture of
// `target`: schedules of others are not worth carrying over.
bool SameArchitecture(const std::string& row_target, const Target& target);

// The field of the key in which `row` differs first; "provenance" where only
// the log is another.
std::string KeyDifference(const BestKey& row, const BestKey& asked);

// Fields that differ: nearer rows have fewer. Another log counts as one.
int KeyDistance(const BestKey& row, const BestKey& asked);

// "measured on znver5-8c with 1 thread(s), caches warm, by another log
// (import:lab-b); its time here is unknown".
std::string NeighbourReason(const BestKnown& row);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_NEIGHBOURS_H_
