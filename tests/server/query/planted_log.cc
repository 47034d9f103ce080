#include "tests/server/query/planted_log.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/digest.h"
#include "server/query/workload_info.h"
#include "tests/server/support/spaces.h"

namespace regatta::testing {
namespace {

constexpr char kProtocol[] = "7";

class Planter {
 public:
  Planter(TuningLog& log, const std::string& compiler)
      : log_(log), compiler_(compiler) {}

  // A record of `schedule` ("" the default) that can be changed before it is
  // stored.
  v1::TrialResult Make(const std::string& workload, const char* device_class,
                       const std::string& schedule = "") {
    const Workload parsed = WorkloadOf(workload);
    CHECK(log_.PutWorkload(DescribeWorkload(parsed)).ok());
    const char* target =
        device_class == std::string(kClassA) ? kTargetText : kOtherTargetText;
    const auto space = SpaceOf(workload, target);
    v1::TrialResult result;
    v1::TrialSpec* spec = result.mutable_spec();
    spec->set_job_id(1);
    spec->set_ordinal(++ordinal_);
    spec->set_trial_id(absl::StrCat("1/0/", ordinal_));
    spec->set_kind(schedule.empty() ? v1::TRIAL_KIND_DEFAULT
                                    : v1::TRIAL_KIND_CANDIDATE);
    spec->set_workload(parsed.text);
    spec->set_workload_key(parsed.key);
    spec->set_device_class(device_class);
    spec->set_target(target);
    spec->mutable_policy()->set_threads(1);
    spec->mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
    spec->mutable_schedule()->set_space("cpu");
    spec->mutable_schedule()->set_space_version(kSpaceVersion);
    spec->mutable_schedule()->set_text(
        schedule.empty() ? space->Print(space->Default()) : schedule);
    spec->set_compiler_version(compiler_);
    result.set_outcome(v1::OUTCOME_OK);
    result.set_device_class(device_class);
    result.set_device_id(absl::StrCat("board-", ordinal_ % 2));
    result.set_provenance("agent");
    result.set_binary_hash(Sha256Hex(spec->schedule().text()));
    result.mutable_environment()->set_measure_protocol(kProtocol);
    result.set_time_ns(1000 + 10 * ordinal_);
    for (int i = 0; i < 3; ++i) {
      v1::Block* block = result.add_blocks();
      block->set_calls(10);
      block->set_elapsed_ns(result.time_ns() * 10 + i);
    }
    return result;
  }
  void Store(const v1::TrialResult& result) {
    const auto stored = log_.Append({&result, 1}, 1'700'000'000'000 + ordinal_);
    CHECK(stored.ok()) << stored.status();
  }
  void Publish(const v1::TrialResult& result) {
    Publication publication;
    publication.key = {result.spec().workload_key(), result.device_class(), 1,
                       v1::CACHE_STATE_WARM};
    publication.trial_id = result.spec().trial_id();
    publication.time_ns = result.time_ns();
    publication.low_ns = result.time_ns() - 3;
    publication.high_ns = result.time_ns() + 4;
    publication.default_ns = result.time_ns() * 2;
    publication.speedup = 2;
    publication.speedup_low = 1.5;
    publication.speedup_high = 2.5;
    const absl::Status status = log_.Publish(publication, 1'700'000'100'000);
    CHECK(status.ok()) << status;
  }

 private:
  TuningLog& log_;
  const std::string compiler_;
  int64_t ordinal_ = 0;
};

std::string Other(const std::string& workload) {
  const auto space = SpaceOf(workload);
  return space->Print(space->Seeds().at(1));
}

constexpr char kMeasured[] = "matmul(m=64,n=64,k=64)";
constexpr char kConfirmed[] = "matmul(m=128,n=64,k=64)";
constexpr char kOldCompiler[] = "matmul(m=64,n=256,k=64)";
constexpr char kOldProtocol[] = "matmul(m=32,n=32,k=512)";
constexpr char kOldTarget[] = "matmul(m=48,n=32,k=512)";
constexpr char kScreened[] =
    "conv2d(n=1,h=14,w=14,ci=16,co=16,kh=3,kw=3,pad=1)";
constexpr char kWrong[] = "matmul(m=96,n=96,k=96)";
constexpr char kUnreadable[] = "softmax(rows=64,cols=64)";
constexpr char kOnOtherClass[] = "softmax(rows=32,cols=512)";

}  // namespace

void PlantLog(TuningLog& log, const std::string& compiler) {
  Planter plant(log, compiler);
  plant.Store(plant.Make(kMeasured, kClassA));

  plant.Store(plant.Make(kConfirmed, kClassA));
  const auto confirmed = plant.Make(kConfirmed, kClassA, Other(kConfirmed));
  plant.Store(confirmed);
  plant.Publish(confirmed);

  auto old = plant.Make(kOldCompiler, kClassA);
  old.mutable_spec()->set_compiler_version("0000/LLVM 1");
  plant.Store(old);
  old = plant.Make(kOldProtocol, kClassA);
  old.mutable_environment()->set_measure_protocol("6");
  old.set_provenance("import:elsewhere");
  plant.Store(old);
  old = plant.Make(kOldTarget, kClassA);
  old.mutable_spec()->set_target(
      "cpu,triple=x86_64-linux-gnu,mcpu=znver3,vector_bits=256,"
      "vector_registers=16");
  plant.Store(old);

  plant.Store(plant.Make(kScreened, kClassA, Other(kScreened)));

  const auto wrong = plant.Make(kWrong, kClassA, Other(kWrong));
  plant.Store(wrong);
  plant.Publish(wrong);
  auto disproof = plant.Make(kWrong, kClassA, Other(kWrong));
  disproof.set_outcome(v1::OUTCOME_WRONG_RESULT);
  disproof.clear_blocks();
  disproof.clear_time_ns();
  plant.Store(disproof);

  plant.Store(plant.Make(kUnreadable, kClassA, "rows{mystery=7}"));
  plant.Store(plant.Make(kOnOtherClass, kClassB));
  // The newest of its class: what the class's facts come from.
  plant.Store(plant.Make("matmul(m=16,n=16,k=16)", kClassA));
}

void PlantLittle(TuningLog& log, const std::string& compiler) {
  Planter plant(log, compiler);
  plant.Store(plant.Make("matmul(m=16,n=16,k=16)", kClassA));
  plant.Store(plant.Make(kOnOtherClass, kClassB));
}

void PlantOn(TuningLog& log, const std::string& compiler,
             const std::string& workload, const char* device_class) {
  Planter plant(log, compiler);
  plant.Store(plant.Make(workload, device_class));
}

std::vector<v1::BestRequest> PlantedQuestions() {
  const std::vector<std::string> workloads = {
      kMeasured,
      "matmul(m=64, n=64, k=64)",
      "C[i,j] = sum(k) A[i,k] * B[k,j] where i=64, j=64, k=64",
      kConfirmed,
      kOldCompiler,
      kOldProtocol,
      kOldTarget,
      kScreened,
      kWrong,
      kUnreadable,
      kOnOtherClass,
      "matmul(m=72,n=64,k=64)",
      "B[i,j] = max(A[i,j], 0) where i=8, j=8",
      "matmul(m=64)",
      "",
  };
  std::vector<v1::BestRequest> questions;
  for (const std::string& workload : workloads) {
    for (const char* device_class : {kClassA, kClassB, "unheard-of", ""}) {
      for (const char* target : {"", kTargetText, "cpu,triple"}) {
        v1::BestRequest request;
        request.set_workload(workload);
        request.set_device_class(device_class);
        request.set_target(target);
        questions.push_back(request);
      }
      v1::BestRequest request;
      request.set_workload(workload);
      request.set_device_class(device_class);
      request.mutable_policy()->set_threads(2);
      questions.push_back(request);
      request.mutable_policy()->set_threads(-1);
      questions.push_back(request);
      request.mutable_policy()->set_threads(1);
      request.mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
      questions.push_back(request);
    }
  }
  return questions;
}

std::string Line(const absl::StatusOr<v1::BestAnswer>& answer) {
  if (!answer.ok()) {
    return absl::StrCat("error ", static_cast<int>(answer.status().code()));
  }
  v1::BestAnswer timeless = *answer;
  timeless.clear_age_s();
  return timeless.ShortDebugString();
}

}  // namespace regatta::testing
