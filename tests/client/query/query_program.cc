// A user of libregatta_query in C++: the wrapper, its errors, several threads.
//   query_program_cxx FILE WORKLOAD CLASS
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "regatta_query.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    regatta::Query("/nowhere/none.rgs");
    return 3;
  } catch (const regatta::QueryError& error) {
    if (error.code() != REGATTA_QUERY_NOT_FOUND) return 4;
    if (std::strstr(error.what(), "/nowhere/none.rgs") == nullptr) return 5;
  }
  try {
    const regatta::Query query(argv[1]);
    regatta::QueryQuestion question;
    question.workload = argv[2];
    question.device_class = argv[3];
    const regatta::Query::Answer answer = query.Ask(question);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int j = 0; j < 100; ++j) {
          wrong[i] += query.Ask(question).schedule != answer.schedule;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int count : wrong) {
      if (count != 0) return 6;
    }
    question.workload = "matmul(m=0)";
    const regatta::QueryAnswers batch = query.AskAll({question, question});
    if (batch.size() != 2 || batch[1].code != REGATTA_QUERY_INVALID) return 7;
    try {
      query.Ask(question);
      return 8;
    } catch (const regatta::QueryError& error) {
      if (std::strstr(error.what(), "workload") == nullptr) return 9;
    }
    std::printf("%s %s\n", answer.answers[0].grade_name,
                answer.schedule.c_str());
  } catch (const regatta::QueryError& error) {
    std::printf("%d %s\n", static_cast<int>(error.code()), error.what());
    return 1;
  }
  return 0;
}
