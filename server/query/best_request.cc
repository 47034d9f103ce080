#include "server/query/best_request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ops/op.h"
#include "server/query/best_query.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> TargetTextOf(const BestRequestContext& context,
                                         const std::string& device_class,
                                         const std::string& workload_key) {
  if (context.target_of_class) {
    if (const auto text = context.target_of_class(device_class)) return *text;
  }
  ASSIGN_OR_RETURN(const auto rows, context.log->BestOfWorkload(workload_key));
  for (const BestKnown& row : rows) {
    // What another log says of a class may not be what its boards here are.
    if (row.key.device_class == device_class && !row.key.imported) {
      return row.record.result.spec().target();
    }
  }
  return absl::NotFoundError(
      absl::StrCat("the target of class ", device_class,
                   " is not known until one of its boards registers; give the "
                   "target instead"));
}

absl::StatusOr<Target> ResolveTarget(const BestRequestContext& context,
                                     const v1::BestRequest& request,
                                     const std::string& workload_key) {
  if (!request.target().empty()) {
    auto target = ParseTarget(request.target());
    if (!target.ok()) return Annotate(target.status(), "target");
    auto complete = context.complete(*target);
    if (!complete.ok()) return Annotate(complete.status(), "target");
    return complete;
  }
  ASSIGN_OR_RETURN(const std::string text,
                   TargetTextOf(context, request.device_class(), workload_key));
  ASSIGN_OR_RETURN(const Target target, ParseTarget(text));
  return context.complete(target);
}

}  // namespace

absl::StatusOr<v1::Policy> NormalisePolicy(const v1::Policy& policy) {
  v1::Policy full = policy;
  if (full.threads() == 0) full.set_threads(1);
  if (full.threads() < 0 || full.threads() > 4096) {
    return absl::InvalidArgumentError(absl::StrCat(
        "policy.threads is ", full.threads(), "; it must be from 1 to 4096"));
  }
  if (full.cache() == v1::CACHE_STATE_UNSPECIFIED) {
    full.set_cache(v1::CACHE_STATE_WARM);
  }
  if (full.cache() != v1::CACHE_STATE_WARM &&
      full.cache() != v1::CACHE_STATE_COLD) {
    return absl::InvalidArgumentError(
        absl::StrCat("policy.cache is ", static_cast<int>(full.cache()),
                     "; it must be warm (1) or cold (2)"));
  }
  return full;
}

absl::StatusOr<v1::BestAnswer> AnswerBestRequest(
    const BestRequestContext& context, const v1::BestRequest& request) {
  const std::string& device_class = request.device_class();
  if (device_class.empty() == request.target().empty()) {
    return absl::InvalidArgumentError(
        device_class.empty()
            ? "device_class and target are both empty; one of them is needed"
            : "device_class and target are both given; only one may be");
  }
  BestQuestion question;
  ASSIGN_OR_RETURN(question.policy, NormalisePolicy(request.policy()));
  if (!device_class.empty() && context.check_class) {
    RETURN_IF_ERROR(
        context.check_class(device_class, question.policy.threads()));
  }
  auto workload = ParseWorkload(request.workload());
  if (!workload.ok()) return Annotate(workload.status(), "workload");
  question.workload = *std::move(workload);
  question.device_class = device_class;
  ASSIGN_OR_RETURN(question.target,
                   ResolveTarget(context, request, question.workload.key));
  question.simulated = context.is_simulated && !device_class.empty() &&
                       context.is_simulated(device_class);
  BestContext best;
  best.log = context.log;
  ASSIGN_OR_RETURN(best.compiler_version,
                   context.compiler_version(question.target));
  if (context.measure_protocol) {
    best.measure_protocol = context.measure_protocol(device_class);
  }
  best.is_simulated = context.is_simulated;
  best.now_unix_ms = context.now_unix_ms;
  return AnswerBest(best, question);
}

}  // namespace regatta
