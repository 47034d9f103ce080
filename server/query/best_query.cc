#include "server/query/best_query.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/space/space.h"
#include "proto/outcome_names.h"
#include "server/query/neighbours.h"
#include "server/query/workload_info.h"

namespace regatta {
namespace {

// How many neighbours are tried. The nearest nearly always carries over, so the
// others are read only when it does not.
constexpr int kNeighbours = 8;

class Answerer {
 public:
  Answerer(const BestContext& context, const BestQuestion& question)
      : context_(context), question_(question), workload_(question.workload) {}

  absl::StatusOr<v1::BestAnswer> Answer() {
    if (question_.device_class.empty()) return AnswerForTarget();
    ASSIGN_OR_RETURN(const auto best, context_.source->Best(Key()));
    if (best) {
      ASSIGN_OR_RETURN(auto answer, FromOwnRow(*best));
      if (answer) return *std::move(answer);
    }
    ASSIGN_OR_RETURN(auto shape, FromOtherShape());
    if (shape) return *std::move(shape);
    ASSIGN_OR_RETURN(auto device, FromOtherClass());
    if (device) return *std::move(device);
    return Default(absl::StrCat("nothing was measured for this workload on ",
                                question_.device_class, ", nor for another ",
                                "shape or class that could be carried over"));
  }

 private:
  BestKey Key() const {
    return {question_.workload_key, question_.device_class,
            question_.policy.threads(), question_.policy.cache()};
  }

  // Parsed and made only when an answer needs them: most are rows that somebody
  // has looked at before.
  absl::StatusOr<const Workload*> GetWorkload() {
    if (workload_ == nullptr) {
      ASSIGN_OR_RETURN(workload_,
                       context_.memo->Parse(question_.workload_text));
    }
    return workload_.get();
  }
  absl::StatusOr<const Space*> GetSpace() {
    if (space_ == nullptr) {
      ASSIGN_OR_RETURN(const Workload* workload, GetWorkload());
      ASSIGN_OR_RETURN(space_,
                       context_.memo->SpaceOf(*workload, *question_.target,
                                              question_.policy.threads()));
    }
    return space_.get();
  }

  v1::BestAnswer Blank(const char* grade) const {
    v1::BestAnswer answer;
    answer.set_grade(grade);
    answer.set_workload(question_.workload_text);
    answer.set_workload_key(question_.workload_key);
    answer.set_device_class(question_.device_class);
    *answer.mutable_policy() = question_.policy;
    answer.set_target(question_.target->text);
    answer.set_age_s(-1);
    answer.mutable_schedule()->set_space(question_.target->target.kind);
    answer.mutable_schedule()->set_space_version(kSpaceVersion);
    return answer;
  }

  // `reason` follows on what was found wrong with better rows.
  absl::StatusOr<v1::BestAnswer> Default(const std::string& reason) {
    v1::BestAnswer answer = Blank("default");
    ASSIGN_OR_RETURN(const Workload* workload, GetWorkload());
    ASSIGN_OR_RETURN(
        *answer.mutable_schedule()->mutable_text(),
        context_.memo->DefaultSchedule(*workload, *question_.target,
                                       question_.policy.threads()));
    answer.set_reason(Reason(reason));
    if (!miss_field_.empty()) answer.set_differing_field(miss_field_);
    return answer;
  }

  std::string Reason(const std::string& reason) const {
    return misses_.empty() ? reason : absl::StrCat(misses_, "; ", reason);
  }

  void Miss(const std::string& what, const std::string& field) {
    absl::StrAppend(&misses_, misses_.empty() ? "" : "; ", what);
    if (miss_field_.empty()) miss_field_ = field;
  }

  // Whether a snapshot's marks are of this compiler and target.
  bool MarksCount() const {
    return context_.taken_by == question_.target->compiler_version &&
           context_.taken_target == question_.target->text;
  }

  // Whether today's compiler is known to give the very binary of a row that it
  // takes.
  bool GivesItsBinary(const BestKnown& row) const {
    if (row.same_binary && MarksCount()) return true;
    const v1::TrialResult& result = row.record.result;
    return context_.gives_binary && !result.binary_hash().empty() &&
           context_.gives_binary({question_.workload_text, question_.target,
                                  question_.policy.threads(),
                                  result.spec().schedule(),
                                  result.binary_hash()});
  }

  // What is wrong with a row for this target; absent: nothing.
  absl::StatusOr<std::optional<std::string>> Unusable(const BestKnown& row,
                                                      std::string* field) {
    if (row.taken && MarksCount()) return std::optional<std::string>();
    const v1::ScheduleText& schedule = row.record.result.spec().schedule();
    const int threads = question_.policy.threads();
    // A space takes longer to make than the row to find.
    if (context_.memo->IsTaken(schedule, question_.workload_text,
                               *question_.target, threads)) {
      return std::optional<std::string>();
    }
    ASSIGN_OR_RETURN(const Space* space, GetSpace());
    auto wrong = WhyNotTaken(schedule, *space, field);
    if (!wrong) {
      context_.memo->NoteTaken(schedule, question_.workload_text,
                               *question_.target, threads);
    }
    return wrong;
  }

  static void FillEvidence(const BestKnown& best, int64_t now_unix_ms,
                           v1::BestAnswer* answer) {
    const v1::TrialResult& result = best.record.result;
    *answer->mutable_schedule() = result.spec().schedule();
    answer->set_time_ns(best.time_ns);
    answer->set_low_ns(best.low_ns);
    answer->set_high_ns(best.high_ns);
    answer->set_samples(best.samples);
    answer->set_boards(best.boards);
    answer->set_default_ns(best.default_ns);
    answer->set_compiler_version(result.spec().compiler_version());
    answer->set_binary_hash(result.binary_hash());
    answer->set_measured_unix_ms(best.record.recorded_unix_ms);
    SetAge(now_unix_ms, answer);
  }

  static std::string Confirmed(const BestKnown& best) {
    return best.confirmed
               ? "confirmed by an interleaved comparison with the default"
               : "the default, measured";
  }

  // Which part of the row's environment is not today's; empty: all is, or makes
  // no difference. `words` say what differs.
  std::string Difference(const BestKnown& row, std::string* words) const {
    const v1::TrialResult& result = row.record.result;
    const v1::TrialSpec& spec = result.spec();
    const auto differs = [&](const char* name, const std::string& then,
                             const std::string& now) {
      *words = absl::StrCat("measured with ", name, " ", then, ", now ", now);
    };
    const std::string& target = question_.target->text;
    if (spec.target() != target) {
      differs("target", spec.target(), target);
      return "target";
    }
    const std::string& compiler = question_.target->compiler_version;
    if (spec.compiler_version() != compiler) {
      differs("compiler", spec.compiler_version(), compiler);
      if (!GivesItsBinary(row)) return "compiler_version";
      absl::StrAppend(words, ", which gives the very binary that was measured");
    }
    const std::string& protocol = result.environment().measure_protocol();
    if (!context_.measure_protocol.empty() &&
        protocol != context_.measure_protocol) {
      differs("measuring protocol", protocol, context_.measure_protocol);
      return "measure_protocol";
    }
    return "";
  }

  // A candidate that no interleaved comparison has confirmed is the luckiest of
  // many short timings: until then the default stands.
  static bool OnlyScreened(const BestKnown& row) {
    return !row.confirmed &&
           row.record.result.spec().kind() != v1::TRIAL_KIND_DEFAULT;
  }

  absl::StatusOr<std::optional<v1::BestAnswer>> FromOwnRow(
      const BestKnown& best) {
    std::string field;
    ASSIGN_OR_RETURN(const auto wrong, Unusable(best, &field));
    if (wrong) {
      Miss(*wrong, field);
      return std::optional<v1::BestAnswer>();
    }
    if (OnlyScreened(best)) {
      Miss(
          "a faster schedule was measured, but not yet confirmed against the "
          "default",
          "confirmation");
      return std::optional<v1::BestAnswer>();
    }
    std::string words;
    field = Difference(best, &words);
    v1::BestAnswer answer = Blank(field.empty() ? "exact" : "compatible");
    FillEvidence(best, context_.now_unix_ms, &answer);
    answer.set_differing_field(field);
    answer.set_reason(words.empty()
                          ? Confirmed(best)
                          : absl::StrCat(words, "; ", Confirmed(best)));
    return std::optional<v1::BestAnswer>(std::move(answer));
  }

  // The schedule of a row of another key, carried over to this space.
  static std::optional<std::string> CarryOver(const BestKnown& row,
                                              const Space& space) {
    const std::string& text = row.record.result.spec().schedule().text();
    if (row.record.result.spec().schedule().space() != space.name()) {
      return std::nullopt;
    }
    const auto schedule = space.CarryOver(text);
    if (!schedule) return std::nullopt;
    return space.Print(*schedule);
  }

  v1::BestAnswer Suggestion(const char* grade, const std::string& schedule,
                            const std::string& field,
                            const std::string& reason) const {
    v1::BestAnswer answer = Blank(grade);
    answer.mutable_schedule()->set_text(schedule);
    answer.set_differing_field(field);
    answer.set_reason(Reason(reason));
    return answer;
  }

  absl::StatusOr<std::optional<v1::BestAnswer>> FromOtherShape() {
    ASSIGN_OR_RETURN(const Workload* workload, GetWorkload());
    const WorkloadInfo info = DescribeWorkload(*workload);
    // By workload: the second read may be of a later state of the log.
    std::set<std::string> tried;
    for (const int limit : {1, kNeighbours}) {
      ASSIGN_OR_RETURN(const auto rows,
                       context_.source->BestOfNeighbours(info, Key(), limit));
      for (const BestKnown& row : rows) {
        if (!tried.insert(row.key.workload_key).second) continue;
        ASSIGN_OR_RETURN(const Space* space, GetSpace());
        if (const auto schedule = CarryOver(row, *space)) {
          return Suggestion(
              "neighbour_shape", *schedule, "workload",
              absl::StrCat("carried over from ",
                           row.record.result.spec().workload(),
                           "; its time on this shape is unknown"));
        }
      }
      if (rows.size() < static_cast<size_t>(limit)) break;
    }
    return std::optional<v1::BestAnswer>();
  }

  bool MayAnswer(const std::string& device_class) const {
    return question_.simulated || !context_.is_simulated ||
           !context_.is_simulated(device_class);
  }

  absl::StatusOr<std::optional<v1::BestAnswer>> FromOtherClass() {
    ASSIGN_OR_RETURN(auto rows,
                     context_.source->BestOfWorkload(question_.workload_key));
    const BestKey key = Key();
    // Rows that differ in fewer fields first, then by name.
    const auto distance = [&](const BestKnown& row) {
      return KeyDistance(row.key, key);
    };
    std::sort(rows.begin(), rows.end(),
              [&](const BestKnown& a, const BestKnown& b) {
                return std::make_pair(distance(a), a.key) <
                       std::make_pair(distance(b), b.key);
              });
    for (const BestKnown& row : rows) {
      if (row.key == key || !MayAnswer(row.key.device_class) ||
          !SameArchitecture(row.record.result.spec().target(),
                            question_.target->target)) {
        continue;
      }
      ASSIGN_OR_RETURN(const Space* space, GetSpace());
      if (const auto schedule = CarryOver(row, *space)) {
        return Suggestion("neighbour_device", *schedule,
                          KeyDifference(row.key, key), NeighbourReason(row));
      }
    }
    return std::optional<v1::BestAnswer>();
  }

  // Rows of any class that was measured for this very target.
  absl::StatusOr<v1::BestAnswer> AnswerForTarget() {
    ASSIGN_OR_RETURN(const auto rows,
                     context_.source->BestOfWorkload(question_.workload_key));
    const BestKnown* best = nullptr;
    for (const BestKnown& row : rows) {
      const v1::TrialSpec& spec = row.record.result.spec();
      std::string field;
      if (spec.target() != question_.target->text ||
          row.key.threads != question_.policy.threads() ||
          row.key.cache != question_.policy.cache() || row.key.imported ||
          !MayAnswer(row.key.device_class) || OnlyScreened(row)) {
        continue;
      }
      ASSIGN_OR_RETURN(const auto wrong, Unusable(row, &field));
      if (wrong) {
        Miss(*wrong, field);
        continue;
      }
      // More evidence first.
      const auto weight = [](const BestKnown& known) {
        return std::make_pair(known.confirmed, known.samples);
      };
      if (best == nullptr || weight(row) > weight(*best)) best = &row;
    }
    if (best == nullptr) {
      return Default(
          "nothing was measured for this workload on a board of "
          "this target");
    }
    v1::BestAnswer answer = Blank("compatible");
    FillEvidence(*best, context_.now_unix_ms, &answer);
    answer.set_device_class(best->key.device_class);
    answer.set_differing_field("device_class");
    answer.set_reason(absl::StrCat("measured on class ", best->key.device_class,
                                   ", which has this target; ",
                                   Confirmed(*best)));
    return answer;
  }

  const BestContext& context_;
  const BestQuestion& question_;
  std::shared_ptr<const Workload> workload_;
  std::shared_ptr<const Space> space_;
  std::string misses_;      // why better rows do not count
  std::string miss_field_;  // of the first of them
};

}  // namespace

void SetAge(int64_t now_unix_ms, v1::BestAnswer* answer) {
  const int64_t measured = answer->measured_unix_ms();
  answer->set_age_s(
      measured == 0 ? -1
                    : std::max<int64_t>(0, (now_unix_ms - measured) / 1000));
}

std::optional<std::string> WhyNotTaken(const v1::ScheduleText& schedule,
                                       const Space& space, std::string* field) {
  if (schedule.space() != space.name()) {
    *field = "space";
    return absl::StrCat("the recorded schedule is of space '", schedule.space(),
                        "', not '", std::string(space.name()), "'");
  }
  if (schedule.space_version() != kSpaceVersion) {
    *field = "space_version";
    return absl::StrCat("the recorded schedule is of space version ",
                        schedule.space_version(), ", this compiler has ",
                        kSpaceVersion);
  }
  *field = "schedule";
  const auto parsed = space.Parse(schedule.text());
  if (!parsed.ok()) {
    return absl::StrCat("the recorded schedule cannot be read: ",
                        parsed.status().message());
  }
  if (const auto refusal = space.Refusal(*parsed)) {
    return absl::StrCat("the recorded schedule is refused: ", *refusal);
  }
  field->clear();
  return std::nullopt;
}

absl::StatusOr<v1::BestAnswer> AnswerBest(const BestContext& context,
                                          const BestQuestion& question) {
  return Answerer(context, question).Answer();
}

}  // namespace regatta
