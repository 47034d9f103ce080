#include "tests/compiler/schedule_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/check.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/operator_shapes.h"
#include "tests/compiler/status_text.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

constexpr double kFullScale = 100;
// Draws until a schedule is taken that was there before.
constexpr int kTries = 30;

}  // namespace

int SweepSize(int full) {
  const double share = std::min(1.0, TestScale() / kFullScale);
  return std::max(1, static_cast<int>(std::lround(full * share)));
}

ScheduleSweep::ScheduleSweep(const Op& op, int full, uint64_t seed)
    : op_(op.name), full_(full), wanted_(SweepSize(full)), random_(seed) {
  const std::vector<std::string> shapes = ShapesOf(op);
  const bool all = wanted_ >= static_cast<int>(shapes.size());
  // Few turns: other shapes with every seed.
  const size_t first = all ? 0 : random_.Below(shapes.size());
  const size_t count = all ? shapes.size() : wanted_;
  for (size_t i = 0; i < count; ++i) {
    const auto workload = ParseWorkload(shapes[(first + i) % shapes.size()]);
    CHECK(workload.ok()) << workload.status();
    Task& task = tasks_.emplace_back();
    task.workload = *workload;
    task.inputs = SeededInputs(*workload, seed);
    task.expected = Interpret(*workload, task.inputs);
  }
  if (all) defaults_left_ = tasks_.size();
}

const Space& ScheduleSweep::SpaceOf(size_t task, const Target& target) {
  const std::pair<size_t, std::string> key = {task, target.ToString()};
  auto found = spaces_.find(key);
  if (found == spaces_.end()) {
    auto space = CreateSpace(tasks_[task].workload, target, 1);
    CHECK(space.ok()) << space.status();
    found = spaces_.emplace(key, *std::move(space)).first;
  }
  return found->second;
}

std::optional<ScheduleSweep::Draw> ScheduleSweep::Next(const Target& target) {
  if (ran_ >= wanted_ || refused_ > 4 * full_) return std::nullopt;
  last_was_default_ = defaults_left_ > 0;
  const size_t at = last_was_default_ ? tasks_.size() - defaults_left_--
                                      : turn_++ % tasks_.size();
  const Space& space = SpaceOf(at, target);
  Draw draw{.task = &tasks_[at], .space = &space};
  for (int i = 0; i < kTries; ++i) {
    const std::optional<Schedule> schedule =
        last_was_default_ ? space.Default() : space.Sample(random_);
    CHECK(schedule.has_value()) << tasks_[at].workload.text;
    draw.schedule = space.Print(*schedule);
    last_was_new_ = seen_.insert({at, draw.schedule}).second;
    if (last_was_new_ || last_was_default_) break;
  }
  return draw;
}

void ScheduleSweep::Ran() {
  if (last_was_default_) {
    ++defaults_;
    return;
  }
  ++ran_;
  if (last_was_new_) ++distinct_;
}

void ScheduleSweep::Report(const std::string& where) const {
  std::printf(
      "%s, %s: %d random schedules of %d (REGATTA_TEST_SCALE=%g: all) of %zu "
      "shapes: %d ran, %d distinct, %d refused; %d defaults ran\n",
      op_.c_str(), where.c_str(), wanted_, full_, kFullScale, tasks_.size(),
      ran_, distinct_, refused_, defaults_);
  EXPECT_EQ(ran_, wanted_) << op_;
}

void ExpectRightSchedules(const Op& op, const Target& target, int full,
                          uint64_t seed, const std::string& where,
                          const DeviceRunner& run) {
  ScheduleSweep sweep(op, full, seed);
  while (const auto draw = sweep.Next(target)) {
    SCOPED_TRACE(draw->What());
    const auto module = Compile(*draw->space, draw->schedule, "k");
    if (module.status().code() == absl::StatusCode::kFailedPrecondition) {
      sweep.Refused();  // too many registers
      continue;
    }
    ASSERT_STATUS_OK(module);
    ExpectNear(draw->task->workload, run(*module, draw->task->inputs),
               draw->task->expected, where);
    if (testing::Test::HasFailure()) return;
    sweep.Ran();
  }
  sweep.Report(where);
}

void ExpectRightSchedulesWith(const std::string& choice,
                              const std::vector<std::string>& workloads,
                              const Target& target, const Target& built_for,
                              int schedules, const DeviceRunner& run) {
  Random random(29);
  for (const std::string& text : workloads) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload);
    const auto space = CreateSpace(*workload, target, 1);
    ASSERT_STATUS_OK(space);
    const auto inputs = SeededInputs(*workload, 17);
    const auto expected = Interpret(*workload, inputs);
    int ran = 0;
    for (int i = 0; ran < schedules && i < 1000; ++i) {
      const Schedule schedule = space->Sample(random).value();
      const std::string printed = space->Print(schedule);
      if (printed.find(choice) == std::string::npos) continue;
      SCOPED_TRACE(text + " " + printed);
      const Module module = BuildFor(space->Emit(schedule), built_for);
      if (testing::Test::HasFailure()) return;
      ExpectNear(*workload, run(module, inputs), expected, choice);
      if (testing::Test::HasFailure()) return;
      ++ran;
    }
    EXPECT_EQ(ran, schedules) << text << " has few schedules with " << choice;
  }
}

const std::vector<std::string>& ImageWorkloads() {
  static const auto& workloads = *new std::vector<std::string>{
      "matmul(m=19,n=36,k=13)", "matmul(m=64,n=64,k=64)",
      "dense(m=9,n=44,k=21,activation=relu,dtype=f16)",
      "batch_matmul(b=3,m=7,n=20,k=9)",
      "conv2d(n=1,h=9,w=7,ci=5,co=12,kh=3,kw=3,pad=1)"};
  return workloads;
}

const std::vector<std::string>& HalfWorkloads() {
  static const auto& workloads = *new std::vector<std::string>{
      "dense(m=9,n=45,k=21,activation=relu,dtype=f16)",
      "matmul(m=19,n=36,k=13,dtype=f16)", "matmul(m=33,n=48,k=70,dtype=f16)",
      "conv2d(n=1,h=9,w=7,ci=6,co=12,kh=3,kw=3,pad=1,dtype=f16)"};
  return workloads;
}

}  // namespace regatta
