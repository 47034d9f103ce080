// Which answer a query gets, and why, from logs that real jobs wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/query/best_request.h"
#include "server/query/workload_info.h"
#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kClass;
using testing::kCompiler;
using testing::kOtherTargetText;
using testing::kTargetText;
using testing::Measurement;
using ::testing::Not;
using testing::ServerWorld;
using testing::SpaceOf;
using testing::WorkloadOf;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";
constexpr char kOtherShape[] = "matmul(m=512,n=256,k=512)";
constexpr char kOtherClass[] = "neoverse-n1-4c";

class Best : public ::testing::Test {
 protected:
  Best() {
    context_.source = &world_.plain_log();
    context_.complete = [](const Target& target) { return target; };
    context_.compiler_version = [this](const Target&) { return compiler_; };
    context_.target_of_class =
        [](const std::string& name) -> std::optional<std::string> {
      return name == kOtherClass ? kOtherTargetText : kTargetText;
    };
    context_.is_simulated = [](const std::string& name) {
      return name.find("sim") == 0;
    };
    context_.now_unix_ms = absl::ToUnixMillis(world_.clock().Wall()) + 60'000;
  }

  void Tune(const char* workload, int trials = 20) {
    const int64_t id = world_.Submit(world_.Request(workload, trials));
    ASSERT_TRUE(world_.RunToEnd(id));
    task_ = world_.Job(id).tasks(0);
    ASSERT_EQ(task_.state(), v1::JOB_STATE_DONE) << task_.reason();
    context_.now_unix_ms = absl::ToUnixMillis(world_.clock().Wall()) + 60'000;
  }

  v1::BestRequest Request(const char* workload,
                          const char* device_class = kClass) {
    v1::BestRequest request;
    request.set_workload(workload);
    request.set_device_class(device_class);
    return request;
  }

  v1::BestAnswer Ask(const v1::BestRequest& request) {
    auto answer = AnswerBestRequest(context_, request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    EXPECT_THAT(answer->reason(), Not(::testing::IsEmpty()));
    EXPECT_GT(answer->policy().threads(), 0);
    // Whatever the grade, the schedule is one that this compiler takes.
    const auto space = SpaceOf(answer->workload(), answer->target(),
                               answer->policy().threads());
    const auto parsed = space->Parse(answer->schedule().text());
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (parsed.ok()) {
      EXPECT_EQ(space->Refusal(*parsed), std::nullopt);
    }
    return *answer;
  }

  ServerWorld world_;
  BestRequestContext context_;
  std::string compiler_ = kCompiler;
  v1::TaskStatus task_;
};

std::string DefaultOf(const char* workload, const char* target = kTargetText) {
  const auto space = SpaceOf(workload, target);
  return space->Print(space->Default());
}

TEST_F(Best, IsExactWithEvidenceAfterAJob) {
  Tune(kMatmul);
  const v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "exact");
  EXPECT_EQ(answer.differing_field(), "");
  EXPECT_EQ(answer.schedule().text(), task_.schedule());
  EXPECT_EQ(answer.time_ns(), task_.best_ns());
  EXPECT_LE(answer.low_ns(), answer.time_ns());
  EXPECT_GE(answer.high_ns(), answer.time_ns());
  EXPECT_GE(answer.samples(), 12);
  EXPECT_EQ(answer.boards(), 1);
  EXPECT_GT(answer.default_ns(), answer.time_ns());
  EXPECT_EQ(answer.compiler_version(), kCompiler);
  EXPECT_GE(answer.age_s(), 60);
  EXPECT_THAT(answer.reason(), HasSubstr("confirmed"));
}

TEST_F(Best, IsExactOnceTheDefaultAloneWasMeasured) {
  const int64_t id = world_.Submit(world_.Request(kMatmul, 20));
  world_.Turn();
  const v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "exact");
  EXPECT_EQ(answer.schedule().text(), DefaultOf(kMatmul));
  EXPECT_EQ(answer.time_ns(), world_.Job(id).tasks(0).default_ns());
}

TEST_F(Best, IsCompatibleUnderAnotherCompilerAndSaysWhich) {
  Tune(kMatmul);
  compiler_ = "fedcba9876543210/LLVM 20";
  const v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "compatible");
  EXPECT_EQ(answer.differing_field(), "compiler_version");
  EXPECT_EQ(answer.schedule().text(), task_.schedule());
  EXPECT_GT(answer.time_ns(), 0);
  EXPECT_THAT(answer.reason(),
              AllOf(HasSubstr(kCompiler), HasSubstr("fedcba9876543210")));
}

TEST_F(Best, IsExactUnderAnotherCompilerThatGivesTheVeryBinary) {
  Tune(kMatmul);
  const std::string hash = Ask(Request(kMatmul)).binary_hash();
  ASSERT_NE(hash, "");
  int asked = 0;
  bool gives = false;
  context_.gives_binary = [&](const RecordedBinary& binary) {
    ++asked;
    EXPECT_EQ(binary.workload, kMatmul);
    EXPECT_EQ(binary.schedule.text(), task_.schedule());
    EXPECT_EQ(binary.threads, 1);
    EXPECT_EQ(binary.hash, hash);
    EXPECT_EQ(binary.target->compiler_version, compiler_);
    return gives;
  };
  EXPECT_EQ(Ask(Request(kMatmul)).grade(), "exact");
  EXPECT_EQ(asked, 0);
  compiler_ = "fedcba9876543210/LLVM 20";
  EXPECT_EQ(Ask(Request(kMatmul)).grade(), "compatible");
  EXPECT_EQ(asked, 1);
  gives = true;
  const v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "exact");
  EXPECT_EQ(answer.differing_field(), "");
  EXPECT_EQ(answer.compiler_version(), kCompiler);
  EXPECT_THAT(answer.reason(),
              AllOf(HasSubstr(kCompiler), HasSubstr("fedcba9876543210"),
                    HasSubstr("the very binary")));
  // The compiler is not all that can differ.
  context_.measure_protocol = [](const std::string&) { return "2"; };
  EXPECT_EQ(Ask(Request(kMatmul)).differing_field(), "measure_protocol");
}

TEST_F(Best, IsCompatibleUnderAnotherMeasuringProtocol) {
  Tune(kMatmul);
  context_.measure_protocol = [](const std::string&) { return "2"; };
  EXPECT_EQ(Ask(Request(kMatmul)).differing_field(), "measure_protocol");
  EXPECT_EQ(Ask(Request(kMatmul)).grade(), "compatible");
  context_.measure_protocol = [](const std::string&) { return "1"; };
  EXPECT_EQ(Ask(Request(kMatmul)).grade(), "exact");
}

TEST_F(Best, IsCompatibleWhenTheClassHasAnotherTargetNow) {
  Tune(kMatmul);
  context_.target_of_class = [](const std::string&) {
    return std::string(kTargetText) + ",features=+sse3";
  };
  auto target = ParseTarget(std::string(kTargetText) + ",features=+sse3");
  if (!target.ok()) GTEST_SKIP() << "features are written otherwise";
  const v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "compatible");
  EXPECT_EQ(answer.differing_field(), "target");
}

TEST_F(Best, CarriesANearShapeOverWithoutATime) {
  Tune(kMatmul, 40);
  const v1::BestAnswer answer = Ask(Request(kOtherShape));
  EXPECT_EQ(answer.grade(), "neighbour_shape");
  EXPECT_EQ(answer.differing_field(), "workload");
  EXPECT_EQ(answer.time_ns(), 0);
  EXPECT_EQ(answer.age_s(), -1);
  EXPECT_THAT(answer.reason(), HasSubstr(kMatmul));
}

TEST_F(Best, CarriesNothingOverFromAnotherArchitecture) {
  Tune(kMatmul);
  EXPECT_EQ(Ask(Request(kMatmul, kOtherClass)).grade(), "default");
}

TEST_F(Best, CarriesAnotherClassOverWithoutATime) {
  Tune(kMatmul);
  context_.target_of_class = [](const std::string& name) {
    return std::string(kTargetText);
  };
  const v1::BestAnswer answer = Ask(Request(kMatmul, kOtherClass));
  EXPECT_EQ(answer.grade(), "neighbour_device");
  EXPECT_EQ(answer.differing_field(), "device_class");
  EXPECT_EQ(answer.time_ns(), 0);
  EXPECT_THAT(answer.reason(), HasSubstr(kClass));
}

TEST_F(Best, NamesThePolicyFieldThatDiffers) {
  Tune(kMatmul);
  v1::BestRequest request = Request(kMatmul);
  request.mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  EXPECT_EQ(Ask(request).differing_field(), "cache");
  EXPECT_EQ(Ask(request).time_ns(), 0);
  request = Request(kMatmul);
  request.mutable_policy()->set_threads(2);
  EXPECT_EQ(Ask(request).differing_field(), "threads");
}

TEST_F(Best, IsTheDefaultWithoutAnyEvidence) {
  const v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "default");
  EXPECT_EQ(answer.schedule().text(), DefaultOf(kMatmul));
  EXPECT_EQ(answer.time_ns(), 0);
  EXPECT_EQ(answer.default_ns(), 0);
  EXPECT_THAT(answer.reason(), HasSubstr("nothing was measured"));
}

TEST_F(Best, SimulatedClassesAnswerOnlySimulatedQuestions) {
  world_.fleet().AddBoard({.id = "s",
                           .device_class = "sim-2c",
                           .target = kTargetText,
                           .simulated = true});
  world_.fleet().SendFleet();
  v1::SubmitJobRequest request = world_.Request(kMatmul, 10);
  request.mutable_tasks(0)->set_device_classes(0, "sim-2c");
  ASSERT_TRUE(world_.RunToEnd(world_.Submit(request)));
  EXPECT_EQ(Ask(Request(kMatmul)).grade(), "default");
  EXPECT_EQ(Ask(Request(kMatmul, "sim-2c")).grade(), "exact");
  EXPECT_EQ(Ask(Request(kMatmul, "sim-4c")).grade(), "neighbour_device");
  v1::BestRequest for_target;
  for_target.set_workload(kMatmul);
  for_target.set_target(kTargetText);
  EXPECT_EQ(Ask(for_target).grade(), "default");
}

TEST_F(Best, ForATargetTakesWhatAClassOfThatTargetMeasured) {
  v1::BestRequest request;
  request.set_workload(kMatmul);
  request.set_target(kTargetText);
  EXPECT_EQ(Ask(request).grade(), "default");
  Tune(kMatmul);
  const v1::BestAnswer answer = Ask(request);
  EXPECT_EQ(answer.grade(), "compatible");
  EXPECT_EQ(answer.device_class(), kClass);
  EXPECT_EQ(answer.schedule().text(), task_.schedule());
  request.set_target(kOtherTargetText);
  EXPECT_EQ(Ask(request).grade(), "default");
}

// A row as another release or lab could have written it.
void Write(ServerWorld& world, const std::string& workload,
           const std::string& schedule, int32_t space_version,
           const std::string& trial_id, v1::Outcome outcome = v1::OUTCOME_OK) {
  const Workload parsed = WorkloadOf(workload);
  ASSERT_TRUE(world.plain_log().PutWorkload(DescribeWorkload(parsed)).ok());
  v1::TrialResult result;
  v1::TrialSpec* spec = result.mutable_spec();
  spec->set_trial_id(trial_id);
  spec->set_workload(parsed.text);
  spec->set_workload_key(parsed.key);
  spec->set_device_class(kClass);
  spec->set_target(kTargetText);
  spec->mutable_policy()->set_threads(1);
  spec->mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  spec->mutable_schedule()->set_space("cpu");
  spec->mutable_schedule()->set_space_version(space_version);
  spec->mutable_schedule()->set_text(schedule);
  spec->set_kind(v1::TRIAL_KIND_CANDIDATE);
  result.set_device_class(kClass);
  result.set_device_id("elsewhere");
  result.set_outcome(outcome);
  if (outcome == v1::OUTCOME_OK) {
    result.set_time_ns(1000);
    v1::Block* block = result.add_blocks();
    block->set_calls(1);
    block->set_elapsed_ns(1000);
  }
  ASSERT_TRUE(world.plain_log().Append({&result, 1}, 1).ok());
}

TEST_F(Best, ARowThatThisCompilerDoesNotTakeIsAMissWithAReason) {
  Write(world_, kMatmul, "contraction{mr=banana}", kSpaceVersion, "i/1");
  v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "default");
  EXPECT_EQ(answer.differing_field(), "schedule");
  EXPECT_THAT(answer.reason(), HasSubstr("cannot be read"));

  const char* other = "softmax(rows=64,cols=64)";  // no neighbour of the first
  Write(world_, other, DefaultOf(other), kSpaceVersion + 1, "i/2");
  answer = Ask(Request(other));
  EXPECT_EQ(answer.grade(), "default");
  EXPECT_EQ(answer.differing_field(), "space_version");
  EXPECT_THAT(answer.reason(), HasSubstr("space version"));
}

TEST_F(Best, AScheduleThatWasWrongInAnotherTrialIsNoAnswer) {
  const auto space = SpaceOf(kMatmul);
  const std::string schedule = space->Print(space->Seeds().at(1));
  Write(world_, kMatmul, schedule, kSpaceVersion, "i/1");
  // Screened only: the default stands until a comparison is published.
  v1::BestAnswer answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "default");
  EXPECT_EQ(answer.differing_field(), "confirmation");
  EXPECT_EQ(answer.schedule().text(), DefaultOf(kMatmul));
  Publication publication;
  publication.key = {ParseWorkload(kMatmul)->key, answer.device_class(), 1,
                     v1::CACHE_STATE_WARM};
  publication.trial_id = "i/1";
  publication.time_ns = publication.low_ns = publication.high_ns = 1000;
  ASSERT_TRUE(world_.plain_log().Publish(publication, 1).ok());
  EXPECT_EQ(Ask(Request(kMatmul)).schedule().text(), schedule);
  Write(world_, kMatmul, schedule, kSpaceVersion, "i/2",
        v1::OUTCOME_WRONG_RESULT);
  answer = Ask(Request(kMatmul));
  EXPECT_EQ(answer.grade(), "default");
  EXPECT_NE(answer.schedule().text(), schedule);
}

TEST_F(Best, RefusesWhatMakesNoSense) {
  struct {
    void (*change)(v1::BestRequest*);
    absl::StatusCode code;
    const char* words;
  } const cases[] = {
      {[](auto* r) { r->clear_device_class(); },
       absl::StatusCode::kInvalidArgument, "both empty"},
      {[](auto* r) { r->set_target(kTargetText); },
       absl::StatusCode::kInvalidArgument, "both given"},
      {[](auto* r) { r->set_workload("C[i] = A[j] where i=4"); },
       absl::StatusCode::kInvalidArgument, "workload: "},
      {[](auto* r) { r->mutable_policy()->set_threads(-3); },
       absl::StatusCode::kInvalidArgument, "policy.threads"},
      {[](auto* r) {
         r->clear_device_class();
         r->set_target("cpu,triple");
       },
       absl::StatusCode::kInvalidArgument, "target: "},
  };
  for (const auto& bad : cases) {
    v1::BestRequest request = Request(kMatmul);
    bad.change(&request);
    const auto answer = AnswerBestRequest(context_, request);
    EXPECT_EQ(answer.status().code(), bad.code);
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr(bad.words));
  }
}

TEST(WorkloadStructure, LeavesExtentsOutAndStridesIn) {
  const auto structure = [](const std::string& text) {
    return DescribeWorkload(WorkloadOf(text)).structure;
  };
  EXPECT_EQ(structure(kMatmul), structure("matmul(m=7,n=129,k=1024)"));
  EXPECT_NE(structure(kMatmul),
            structure("matmul(m=512,n=512,k=512,dtype=f16)"))
      << "types stay";
  const std::string conv =
      "conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1,stride=";
  EXPECT_NE(structure(conv + "1)"), structure(conv + "2)"));
  // A mean's 1/cols is an extent in other words.
  EXPECT_EQ(structure("layer_norm(rows=4,cols=1000)"),
            structure("layer_norm(rows=64,cols=96)"));
  EXPECT_NE(structure("layer_norm(rows=4,cols=1000)"),
            structure("rms_norm(rows=4,cols=1000)"));
  EXPECT_THAT(DescribeWorkload(WorkloadOf(kMatmul)).extents,
              ::testing::ElementsAre(512, 512, 512));
}

}  // namespace
}  // namespace regatta
