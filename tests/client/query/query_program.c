/* A user of libregatta_query in plain C: asks about every line of a file of
 * questions and prints the answers, one line each.
 *   query_program FILE QUESTIONS
 * A question is WORKLOAD|CLASS|TARGET|THREADS|CACHE with CACHE 0 or 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regatta_query.h"

enum { kMaxQuestions = 4096, kMaxLine = 4096 };

static char *Copy(const char *text) {
  char *copy = malloc(strlen(text) + 1);
  if (copy != NULL) strcpy(copy, text);
  return copy;
}

/* The next field of *line, which moves on. */
static char *Field(char **line) {
  char *field = *line;
  char *end = strchr(field, '|');
  if (end != NULL) {
    *end = '\0';
    *line = end + 1;
  }
  return Copy(field);
}

static size_t ReadQuestions(const char *path,
                            regatta_query_question *questions) {
  char line[kMaxLine];
  size_t count = 0;
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  while (count < kMaxQuestions && fgets(line, sizeof(line), file) != NULL) {
    regatta_query_question question;
    char *rest = line;
    char *device_class, *target;
    line[strcspn(line, "\n")] = '\0';
    memset(&question, 0, sizeof(question));
    question.size = sizeof(question);
    question.workload = Field(&rest);
    device_class = Field(&rest);
    target = Field(&rest);
    question.device_class = *device_class == '\0' ? NULL : device_class;
    question.target = *target == '\0' ? NULL : target;
    question.threads = atoi(Field(&rest));
    question.cache = atoi(rest) == 1 ? REGATTA_QUERY_COLD : REGATTA_QUERY_WARM;
    questions[count++] = question;
  }
  fclose(file);
  return count;
}

static void Print(const regatta_query_answer *answer) {
  if (answer->code != REGATTA_QUERY_OK) {
    printf("error %d %s\n", (int)answer->code, answer->message);
    return;
  }
  printf("%s|%d|%s|%s|%s|%d|%s|%s|%s|%s|%d|%d|%lld|%lld|%lld|%lld|%lld|%lld|"
         "%s|%s|%s|%lld\n",
         answer->grade_name, (int)answer->grade, answer->differing_field,
         answer->schedule, answer->space, (int)answer->space_version,
         answer->workload, answer->workload_key, answer->device_class,
         answer->target, answer->threads, (int)answer->cache,
         (long long)answer->time_ns, (long long)answer->low_ns,
         (long long)answer->high_ns, (long long)answer->samples,
         (long long)answer->boards, (long long)answer->default_ns,
         answer->compiler_version, answer->binary_hash, answer->reason,
         (long long)answer->measured_unix_ms);
}

int main(int argc, char **argv) {
  static regatta_query_question questions[kMaxQuestions];
  regatta_query_error error;
  regatta_query_answers *answers;
  regatta_query *query;
  size_t count, i;
  if (argc != 3) return 2;
  count = ReadQuestions(argv[2], questions);
  query = regatta_query_open(argv[1], &error);
  if (query == NULL) {
    printf("cannot open: %d %s\n", (int)error.code, error.message);
    return 1;
  }
  /* No array is as long. */
  if (regatta_query_ask(query, questions, (size_t)-1, &error) != NULL ||
      error.code != REGATTA_QUERY_INVALID) {
    return 3;
  }
  answers = regatta_query_ask(query, questions, count, &error);
  regatta_query_close(query);
  if (answers == NULL || error.code != REGATTA_QUERY_OK) {
    printf("cannot ask: %d %s\n", (int)error.code, error.message);
    return 1;
  }
  if (regatta_query_count(answers) != count) return 3;
  if (regatta_query_get(answers, count) != NULL) return 3;
  for (i = 0; i < count; ++i) Print(regatta_query_get(answers, i));
  regatta_query_free(answers);
  regatta_query_free(NULL);
  regatta_query_close(NULL);
  return 0;
}
