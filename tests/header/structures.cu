struct Plan { int n; struct { long rows; } inner; };
//@tune threads(plan.n, plan.inner.rows * plan_n) block({64, 128}, 1) default(block = 128)
//@tune args(plan = { n = 1000, inner = { rows = 7 } }, plan_n = 3, x = random[plan.n])
__global__ void planned(Plan plan, int plan_n, float *x) {}
//# type plan.n: int
//# type plan.inner.rows: long long
//# type plan_n: int
