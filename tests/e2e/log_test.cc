// `regatta log` with real processes: out, in, copied, checked, taken away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const char kWorkload[] = "matmul(m=96,n=80,k=64)";

std::vector<Json> LinesOf(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream in(ReadFile(path));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

std::string WithoutImportFields(std::vector<Json> lines) {
  std::string text;
  for (Json& line : lines) {
    if (line.contains("log")) line["log"].erase("log_id");
    if (line.contains("record")) line["record"]["result"].erase("provenance");
    text += line.dump() + "\n";
  }
  return text;
}

ProcessResult Regatta(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), Program("regatta"));
  return RunProcess(arguments);
}

void Tune(const Fleet& fleet, const std::string& trials) {
  EXPECT_EQ(fleet.Document({"tune", kWorkload, "--trials", trials, "--seed",
                            "3"})["state"],
            "done");
}

// Structure of a T4 document, without Kernel Tuner.
void CheckT4(const Json& document, int64_t results) {
  EXPECT_EQ(document["schema_version"], "1.0.0");
  EXPECT_EQ(document["metadata"]["timeunit"], "milliseconds");
  ASSERT_EQ(document["results"].size(), static_cast<size_t>(results));
  int correct = 0;
  for (const Json& result : document["results"]) {
    EXPECT_EQ(result["configuration"]["workload"], kWorkload);
    EXPECT_TRUE(result["configuration"].contains("sketch"));
    EXPECT_EQ(result["objectives"], Json::array({"time"}));
    EXPECT_EQ(result["measurements"][0]["name"], "time");
    if (result["invalidity"] != "correct") {
      EXPECT_EQ(result["correctness"], 0);
      continue;
    }
    ++correct;
    EXPECT_EQ(result["correctness"], 1);
    EXPECT_GT(result["measurements"][0]["value"].get<double>(), 0);
    EXPECT_FALSE(result["times"]["runtimes"].empty());
  }
  EXPECT_GT(correct, 0);
}

TEST(Log, GoesOutAndInAndIsCopiedWhileAServerHoldsIt) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  Tune(fleet, "12");
  TempDir dir;
  const std::string file = dir.path() + "/a.jsonl";
  const Json exported = fleet.Document({"log", "export", file});
  EXPECT_GT(exported["records"].get<int>(), 12);
  const std::vector<Json> lines = LinesOf(file);
  EXPECT_EQ(lines.size(), exported["entries"].get<size_t>());
  EXPECT_EQ(lines.front()["log"]["records"], exported["records"]);
  EXPECT_EQ(lines.back()["end"]["entries"], lines.size() - 1);

  // Its own records add nothing.
  const Json own = fleet.Document({"log", "import", file});
  EXPECT_EQ(own["known"], lines.size());
  EXPECT_EQ(own["added"]["records"], 0);
  EXPECT_EQ(own["refused"], 0);

  // A fresh log takes everything, once, and gives it again.
  const std::string fresh = dir.path() + "/fresh.db";
  const ProcessResult first =
      Regatta({"log", "import", file, "--log", fresh, "--name", "lab-a"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr(absl::StrCat(exported["records"].get<int>(),
                                                " record(s)")));
  EXPECT_THAT(Regatta({"log", "import", file, "--log", fresh}).out,
              HasSubstr("0 record(s), 0 publication(s), 0 job(s)"));
  const std::string again = dir.path() + "/again.jsonl";
  EXPECT_EQ(Regatta({"log", "export", again, "--log", fresh}).exit_code, 0);
  EXPECT_EQ(WithoutImportFields(LinesOf(again)), WithoutImportFields(lines));
  EXPECT_THAT(ReadFile(again), HasSubstr("\"import:lab-a\""));
  EXPECT_EQ(Regatta({"log", "check", "--log", fresh}).exit_code, 0);

  // A pipe, with damage in it.
  const ProcessResult piped = RunProcess(
      {"/bin/sh", "-c",
       absl::StrCat("(echo garbage; cat ", file,
                    "; echo '{\"v\":7,\"x\":1}') | ", Program("regatta"),
                    " log import - --log ", fresh)});
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_THAT(piped.err, HasSubstr("-:1: no line of an exported log"));
  EXPECT_THAT(piped.err, HasSubstr(absl::StrCat("-:", lines.size() + 2,
                                                ": the line has format 7")));
  WriteFile(dir.path() + "/bad.jsonl", std::string(10 << 20, 'x') + "\n\n{}\n");
  const ProcessResult bad =
      Regatta({"log", "import", dir.path() + "/bad.jsonl", "--log", fresh});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.err, HasSubstr("bad.jsonl:1: the line has"));
  EXPECT_THAT(bad.err, HasSubstr("no line was valid (3 line(s) read)"));
  EXPECT_EQ(bad.out, "");

  // Copies.
  const std::string copy = dir.path() + "/copy.db";
  EXPECT_EQ(fleet.Document({"log", "backup", copy})["file"], copy);
  EXPECT_EQ(fleet.Run({"log", "backup", copy}).exit_code, 1);
  EXPECT_EQ(fleet.Run({"log", "backup", copy, "--force"}).exit_code, 0);
  EXPECT_EQ(Regatta({"log", "check", "--log", copy}).exit_code, 0);
  // What a server that was killed leaves: its write-ahead log is not replayed
  // over the copy.
  const std::string killed = dir.path() + "/killed.db";
  for (const char* suffix : {"", "-wal"}) {
    fs::copy_file(fleet.dir() + "/tuning.db" + suffix, killed + suffix);
  }
  ASSERT_GT(fs::file_size(killed + "-wal"), 0u);
  EXPECT_EQ(
      Regatta({"log", "backup", killed, "--force", "--log", fresh}).exit_code,
      0);
  EXPECT_FALSE(fs::exists(killed + "-wal"));
  EXPECT_FALSE(fs::exists(killed + ".lock"));
  EXPECT_EQ(Regatta({"log", "check", "--log", killed}).exit_code, 0);
  WriteFile(dir.path() + "/gone.db-wal", "acknowledged work");
  const ProcessResult gone =
      Regatta({"log", "backup", dir.path() + "/gone.db", "--log", fresh});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.err, HasSubstr("gone.db-wal exists; --force replaces it"));
  const std::string held = fleet.dir() + "/tuning.db";
  EXPECT_EQ(fleet.Run({"log", "backup", held, "--force"}).exit_code, 1);
  const ProcessResult refused = Regatta({"log", "check", "--log", held});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("regatta-server at " + fleet.server()));
  EXPECT_EQ(fleet.Document({"log", "check"})["whole"], true);
  EXPECT_EQ(fleet.Document({"log", "rebuild"})["changed"], 0);

  const std::string t4 = dir.path() + "/t4.json";
  const Json told = fleet.Document({"log", "export", t4, "--format", "t4"});
  CheckT4(Json::parse(ReadFile(t4)), told["results"].get<int64_t>());
  EXPECT_EQ(told["results"].get<int>() + told["left_out"].get<int>(),
            exported["records"].get<int>());
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    EXPECT_NE(entry.path().extension(), ".new") << entry.path();
  }
}

TEST(Log, KernelTunersOwnSchemaTakesAT4Export) {
  const char* python = std::getenv("REGATTA_KERNEL_TUNER_PYTHON");
  const std::string program = python != nullptr ? python : "python3";
  if (RunProcess({program, "-c", "import kernel_tuner"}).exit_code != 0) {
    GTEST_SKIP() << program << " has no kernel_tuner; install it in a virtual "
                 << "environment and name its python in "
                 << "REGATTA_KERNEL_TUNER_PYTHON";
  }
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  Tune(fleet, "12");
  TempDir dir;
  const std::string file = dir.path() + "/t4.json";
  fleet.Document({"log", "export", file, "--format", "t4"});
  const ProcessResult result = RunProcess(
      {program, std::string(REGATTA_SOURCE_DIR) + "/tests/e2e/check_t4.py",
       file});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("valid"));
}

TEST(Log, AServerGoesOnFromARestoredBackup) {
  TempDir dir;
  const std::string copy = dir.path() + "/copy.db";
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  Tune(fleet, "4");
  EXPECT_EQ(fleet.Document({"log", "backup", copy})["file"], copy);
  const std::string log = fleet.dir() + "/tuning.db";
  const ProcessResult held =
      Regatta({"log", "restore", copy, "--log", log, "--force"});
  EXPECT_EQ(held.exit_code, 1);
  EXPECT_THAT(held.err, HasSubstr("regatta-server at " + fleet.server()));
  Tune(fleet, "4");
  const size_t jobs = fleet.Document({"jobs"})["jobs"].size();
  EXPECT_EQ(jobs, 2u);
  fleet.Stop();

  const ProcessResult refused = Regatta({"log", "restore", copy, "--log", log});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("2 job(s); --force replaces it"));
  const ProcessResult restored =
      Regatta({"log", "restore", copy, "--log", log, "--force", "--json"});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  const Json document = Json::parse(restored.out);
  EXPECT_EQ(document["jobs"], 1);
  EXPECT_EQ(document["log"], fs::canonical(log).string());

  auto up = std::make_unique<Process>(
      std::vector<std::string>{Program("regatta"), "up", "--dir", fleet.dir(),
                               "--listen", "127.0.0.1:0"},
      Environment{});
  ASSERT_TRUE(WaitFor(absl::Seconds(40), [&] {
    return !fleet.server().empty() &&
           fleet.Run({"devices", "--json"}).exit_code == 0;
  }));
  Tune(fleet, "4");
  const Json after = fleet.Document({"jobs"})["jobs"];
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0]["job"], 10'002);
  EXPECT_EQ(after[1]["job"], 1);
  EXPECT_EQ(fleet.Document({"log", "check"})["whole"], true);
  up->Signal(SIGTERM);
  EXPECT_EQ(up->Wait(absl::Seconds(20)).exit_code, 0);
}

// A log from a machine of another CPU, and one that says it is of this class.
TEST(Log, WhatAnotherLogSaysIsNeverCompiledBeforeItWasMeasuredHere) {
  TempDir dir;
  const std::string file = dir.path() + "/a.jsonl";
  {
    Fleet theirs;
    ASSERT_TRUE(theirs.Ready());
    Tune(theirs, "8");
    theirs.Document({"log", "export", file});
  }
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  Json record;
  for (const Json& line : LinesOf(file)) {
    if (line.contains("record") &&
        line["record"]["result"]["outcome"] == "ok" &&
        line["record"]["result"].contains("time_ns") &&
        !line["record"]["result"].contains("abandoned")) {
      record = line;
    }
  }
  ASSERT_FALSE(record.is_null());
  const std::string own_class = record["record"]["result"]["device_class"];
  const std::string target = record["record"]["result"]["spec"]["target"];

  std::string lines;
  std::vector<std::string> workloads;
  std::map<std::string, std::string> hash_before;
  for (int i = 0; i < 20; ++i) {
    const std::string workload =
        absl::StrCat("matmul(m=", 32 + 8 * i, ",n=", 100 - 3 * i, ",k=24)");
    workloads.push_back(workload);
    const Json best = fleet.Document({"best", workload});
    hash_before[workload] = fleet.Document(
        {"compile", workload, "-o", dir.path() + "/k.so"})["binary_hash"];
    const std::string id = absl::StrCat("feed:1/0/", i);
    const bool claims_this_class = i % 2 == 1;
    const std::string other_class =
        claims_this_class ? own_class : "znver9-64c";
    Json line = record;
    Json& result = line["record"]["result"];
    Json& spec = result["spec"];
    spec["trial_id"] = id;
    spec["job_id"] = 1;
    spec.erase("task");
    spec["ordinal"] = i;
    if (i == 0) spec.erase("ordinal");
    spec["workload"] = best["workload"];
    spec["workload_key"] = best["workload_key"];
    spec["device_class"] = other_class;
    // Features that this host does not have.
    spec["target"] = absl::StrCat(target, ",features=+amxint8+avx512fp16");
    result["device_class"] = other_class;
    // A nanosecond a call, which its blocks bear out.
    result["time_ns"] = 1;
    for (Json& block : result["blocks"]) block["elapsed_ns"] = block["calls"];
    lines += line.dump() + "\n";
    lines += Json({{"v", 1},
                   {"publication",
                    {{"trial_id", id},
                     {"workload_key", best["workload_key"]},
                     {"device_class", other_class},
                     {"policy", {{"threads", 1}, {"cache", "warm"}}},
                     {"time_ns", 1},
                     {"low_ns", 1},
                     {"high_ns", 1},
                     {"default_ns", 1000000},
                     {"speedup", 1000000.0},
                     {"job_id", 1},
                     {"unix_ms", 1}}}})
                 .dump() +
             "\n";
  }
  // The version comes first in a line.
  std::string ordered;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    Json body = Json::parse(line);
    body.erase("v");
    ordered += absl::StrCat("{\"v\":1,", body.dump().substr(1), "\n");
  }
  WriteFile(dir.path() + "/foreign.jsonl", ordered);
  const Json imported =
      fleet.Document({"log", "import", dir.path() + "/foreign.jsonl"});
  ASSERT_EQ(imported["added"]["records"], 20) << imported.dump();
  ASSERT_EQ(imported["added"]["publications"], 20) << imported.dump();

  std::map<std::string, int> neighbours;  // by the field that differs
  for (const std::string& workload : workloads) {
    const Json best = fleet.Document({"best", workload});
    EXPECT_EQ(best["grade"], "neighbour_device") << best.dump();
    EXPECT_FALSE(best["reason"].get<std::string>().empty());
    EXPECT_TRUE(best["time_ns"].is_null());
    EXPECT_EQ(best["target"], target);
    EXPECT_THAT(best["reason"].get<std::string>(),
                HasSubstr("by another log (import:foreign)"));
    ++neighbours[best["differing_field"].get<std::string>()];
    const Json compiled =
        fleet.Document({"compile", workload, "-o", dir.path() + "/k.so"});
    EXPECT_EQ(compiled["grade"], "default") << compiled.dump();
    EXPECT_EQ(compiled["binary_hash"], hash_before[workload]) << workload;
    EXPECT_EQ(compiled["target"], target);
  }
  EXPECT_EQ(neighbours["device_class"], 10);
  EXPECT_EQ(neighbours["provenance"], 10);
  EXPECT_EQ(fleet.Run({"best", workloads[0], "--require", "exact"}).exit_code,
            3);
  EXPECT_EQ(fleet.Document({"log", "check"})["whole"], true);
}

TEST(Log, AServerAcknowledgesNothingIntoALogThatWasTakenAway) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  auto tune =
      fleet.Start({"tune", kWorkload, "--trials", "20000", "--seed", "3"});
  const std::string log = fleet.dir() + "/tuning.db";
  const auto job = [&] { return fleet.Document({"jobs"})["jobs"][0]; };
  ASSERT_TRUE(WaitFor(absl::Seconds(30), [&] {
    const Json jobs = fleet.Document({"jobs"})["jobs"];
    return !jobs.empty() && jobs[0]["tasks"][0]["trials"].get<int>() > 5;
  }));
  fs::rename(log, log + ".away");
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return absl::StrContains(job().dump(), "deleted or moved away");
  })) << job().dump();
  EXPECT_THAT(fleet.Logs(), HasSubstr("deleted or moved away"));
  // Put back, it goes on, and nothing was lost or stored twice.
  fs::rename(log + ".away", log);
  const int before = job()["tasks"][0]["trials"].get<int>();
  EXPECT_TRUE(WaitFor(absl::Seconds(60), [&] {
    return job()["tasks"][0]["trials"].get<int>() > before + 20;
  })) << job().dump();
  fleet.Document({"cancel", job()["job"].dump()});
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return job()["state"] == "cancelled";
  })) << job().dump();
  tune->Wait(absl::Seconds(30));
  EXPECT_EQ(fleet.Document({"log", "check"})["whole"], true);
}

}  // namespace
}  // namespace regatta::testing
