#include "client/cli/compile_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compile.h"

namespace regatta::cli {
namespace {

// Built under the name that boards use, so that the caller's choice of a
// function name does not show in the hash.
bool RebuildsToTheSameBytes(const v1::BestAnswer& answer, const Space& space) {
  if (answer.binary_hash().empty()) return false;
  const auto hash = BoardBinaryHash(space, answer.schedule().text());
  return hash.ok() && *hash == answer.binary_hash();
}

}  // namespace

Choice ChooseSchedule(const v1::BestAnswer& answer, const Space& space) {
  const std::string fallback = space.Print(space.Default());
  if (answer.grade() == "default") {
    return {fallback, "default", answer.reason()};
  }
  if (answer.grade() != "exact" && answer.grade() != "compatible") {
    return {fallback, "default",
            absl::StrCat("what is known is a ", answer.grade(),
                         " that was not timed against the default here (",
                         answer.reason(), ")")};
  }
  auto schedule = space.Parse(answer.schedule().text());
  if (!schedule.ok()) {
    return {fallback, "default",
            absl::StrCat("the log's answer is of another space (",
                         schedule.status().message(), ")")};
  }
  if (auto refusal = space.Refusal(*schedule)) {
    return {fallback, "default",
            absl::StrCat("the log's answer is refused here (", *refusal, ")")};
  }
  // Who answered judged by its own compiler, which need not be the one that
  // builds.
  const std::string own = CompilerVersion(space.context().target);
  const bool compiler_alone = answer.grade() == "exact" ||
                              answer.differing_field() == "compiler_version";
  if (!compiler_alone || answer.compiler_version().empty() ||
      answer.compiler_version() == own) {
    return {answer.schedule().text(), answer.grade(), answer.reason()};
  }
  const std::string versions =
      absl::StrCat("measured with compiler ", answer.compiler_version(),
                   ", this program builds with ", own);
  if (RebuildsToTheSameBytes(answer, space)) {
    return {answer.schedule().text(), "exact",
            absl::StrCat(versions,
                         ", which gives the very binary that was "
                         "measured")};
  }
  return {answer.schedule().text(), "compatible", versions};
}

absl::Status ExplainRefusal(const absl::Status& failure, const Choice& choice,
                            const std::string& workload, const Target& target) {
  if (!absl::IsFailedPrecondition(failure)) return failure;
  return absl::FailedPreconditionError(absl::StrCat(
      "the ", choice.grade == "default" ? "default" : "best-known",
      " schedule of '", workload, "' does not fit the target ",
      target.ToString(), ": ", failure.message(),
      "; check the limits that the target names, or tune on a board of it"));
}

}  // namespace regatta::cli
