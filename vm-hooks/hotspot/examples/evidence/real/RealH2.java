import java.sql.*;
import java.util.Random;

/** Queries and updates of an H2 database in memory. Runs until it is killed. */
public class RealH2 {
    static final int ROWS = 60000;

    public static void main(String[] arguments) throws Exception {
        Connection to = DriverManager.getConnection("jdbc:h2:mem:x");
        Statement make = to.createStatement();
        make.execute("create table t(id bigint primary key, k bigint, name varchar(40), v double)");
        make.execute("create index i on t(k)");
        PreparedStatement insert = to.prepareStatement("insert into t values(?,?,?,?)");
        Random random = new Random(1);
        for (long id = 0; id < ROWS; id++) {
            insert.setLong(1, id);
            insert.setLong(2, random.nextInt(5000));
            insert.setString(3, "name" + random.nextInt(1000));
            insert.setDouble(4, random.nextDouble());
            insert.execute();
        }
        PreparedStatement range = to.prepareStatement("select sum(v) from t where k between ? and ?");
        PreparedStatement update = to.prepareStatement("update t set v = v + 1 where id = ?");
        PreparedStatement one = to.prepareStatement("select name, v from t where id = ?");
        PreparedStatement groups = to.prepareStatement(
            "select name, avg(v) from t where k < 300 group by name order by name");
        for (long round = 0;; round++) {
            int from = random.nextInt(4900);
            range.setLong(1, from);
            range.setLong(2, from + 20);
            all(range);
            for (int i = 0; i < 30; i++) {
                update.setLong(1, random.nextInt(ROWS));
                update.execute();
                one.setLong(1, random.nextInt(ROWS));
                all(one);
            }
            if (round % 20 == 0) all(groups);
        }
    }

    static void all(PreparedStatement query) throws SQLException {
        try (ResultSet rows = query.executeQuery()) {
            while (rows.next()) rows.getString(1);
        }
    }
}
